//! The calls for the caller's account and for organizations.

use serde::Serialize;

use crate::world::api::access::OrganizationAction;
use crate::world::api::errors::Refusal;
use crate::world::api::message::Reply;
use crate::world::api::shapes::Stamp;
use crate::world::computes::sizes::{Size, ceiling};
use crate::world::model::{Organization, Reach, Role};
use crate::world::projects::DEFAULT_REGION;
use crate::world::{Context, World};

#[derive(Debug, Serialize)]
struct Me<'a> {
    id: &'a str,
    login: &'a str,
    email: &'a str,
    name: &'a str,
    last_name: &'static str,
    image: &'static str,
    plan: &'static str,
    /// Here and below, 0 means no limit.
    active_seconds_limit: u64,
    projects_limit: usize,
    branches_limit: u32,
    max_autoscaling_limit: Size,
    compute_seconds_limit: u64,
    auth_accounts: [(); 0],
    billing_account: BillingAccount<'a>,
}

/// Billing is not simulated, but clients expect this record.
#[derive(Debug, Serialize)]
struct BillingAccount<'a> {
    state: &'static str,
    payment_source: PaymentSource,
    subscription_type: &'static str,
    payment_method: &'static str,
    quota_reset_at_last: Stamp,
    name: &'a str,
    email: &'a str,
    address_city: &'static str,
    address_country: &'static str,
    address_line1: &'static str,
    address_line2: &'static str,
    address_postal_code: &'static str,
    address_state: &'static str,
}

#[derive(Debug, Serialize)]
struct PaymentSource {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Debug, Serialize)]
struct OrganizationShape<'a> {
    id: &'a str,
    name: &'a str,
    handle: &'a str,
    plan: &'static str,
    created_at: Stamp,
    updated_at: Stamp,
    managed_by: &'static str,
}

#[derive(Debug, Serialize)]
struct OrganizationList<'a> {
    organizations: Vec<OrganizationShape<'a>>,
}

#[derive(Debug, Serialize)]
struct MemberList<'a> {
    members: Vec<MemberAndUser<'a>>,
}

#[derive(Debug, Serialize)]
struct MemberAndUser<'a> {
    member: Member<'a>,
    user: MemberUser<'a>,
}

#[derive(Debug, Serialize)]
struct Member<'a> {
    id: String,
    user_id: &'a str,
    org_id: &'a str,
    role: Role,
    joined_at: Stamp,
}

#[derive(Debug, Serialize)]
struct MemberUser<'a> {
    email: &'a str,
}

#[derive(Debug, Serialize)]
struct Auth<'a> {
    account_id: &'a str,
    auth_method: &'static str,
    auth_data: String,
}

#[derive(Debug, Serialize)]
struct RegionList<'a> {
    regions: Vec<Region<'a>>,
}

#[derive(Debug, Serialize)]
struct Region<'a> {
    region_id: &'a str,
    name: &'a str,
    default: bool,
    geo_lat: &'static str,
    geo_long: &'static str,
}

impl World {
    pub(super) fn get_me(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let id = self.person(context.caller)?;
        let user = self
            .head
            .users
            .get(id)
            .ok_or(Refusal::Absent { what: "user" })?;
        Ok(Reply::ok(&Me {
            id: &user.id,
            login: &user.id,
            email: &user.email,
            name: &user.name,
            last_name: "",
            image: "",
            plan: user.plan.name(),
            active_seconds_limit: 0,
            projects_limit: self.head.settings.max_projects.unwrap_or(0),
            branches_limit: 0,
            max_autoscaling_limit: ceiling(user.plan, self.profile),
            compute_seconds_limit: 0,
            auth_accounts: [],
            billing_account: BillingAccount {
                state: "UNKNOWN",
                payment_source: PaymentSource { kind: "" },
                subscription_type: "UNKNOWN",
                payment_method: "UNKNOWN",
                quota_reset_at_last: Stamp(self.now),
                name: &user.name,
                email: &user.email,
                address_city: "",
                address_country: "",
                address_line1: "",
                address_line2: "",
                address_postal_code: "",
                address_state: "",
            },
        }))
    }

    pub(super) fn list_my_organizations(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let all = self.head.organizations.values();
        let organizations = match &context.caller.reach {
            Reach::Personal { user } => all
                .filter(|own| own.members.contains_key(user))
                .map(organization_shape)
                .collect(),
            Reach::Organization { organization } | Reach::Project { organization, .. } => all
                .filter(|own| own.id == *organization)
                .map(organization_shape)
                .collect(),
        };
        Ok(Reply::ok(&OrganizationList { organizations }))
    }

    pub(super) fn get_organization(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        self.organization(context)
            .map(|organization| Reply::ok(&organization_shape(organization)))
    }

    pub(super) fn list_members(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let organization = self.organization(context)?;
        let members = organization
            .members
            .iter()
            .map(|(user_id, role)| MemberAndUser {
                member: Member {
                    id: format!("{}-{user_id}", organization.id),
                    user_id,
                    org_id: &organization.id,
                    role: *role,
                    joined_at: Stamp(organization.created_at),
                },
                user: MemberUser {
                    email: self.head.users.get(user_id).map_or("", |user| &user.email),
                },
            });
        Ok(Reply::ok(&MemberList {
            members: members.collect(),
        }))
    }

    fn organization(&self, context: &Context<'_>) -> Result<&Organization, Refusal> {
        let id = &context.ids.organization;
        self.allow(context.caller, id, OrganizationAction::Read)?;
        self.head.organizations.get(id).ok_or(Refusal::Absent {
            what: "organization",
        })
    }

    pub(super) fn get_auth(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        let auth_method = match &context.caller.reach {
            Reach::Personal { .. } => "api_key_user",
            Reach::Organization { .. } | Reach::Project { .. } => "api_key_org",
        };
        let account_id = context.caller.reach.account();
        Ok(Reply::ok(&Auth {
            account_id,
            auth_method,
            auth_data: context.caller.key_id.to_string(),
        }))
    }

    pub(super) fn list_regions(&self, context: &Context<'_>) -> Result<Reply, Refusal> {
        self.person(context.caller)?;
        let mut ids: Vec<&str> = self
            .projects
            .iter()
            .map(|(_, project)| project.region_id.as_str())
            .collect();
        ids.push(DEFAULT_REGION);
        ids.sort_unstable();
        ids.dedup();
        let regions = ids.into_iter().map(|region_id| Region {
            region_id,
            name: region_id,
            default: region_id == DEFAULT_REGION,
            geo_lat: "0",
            geo_long: "0",
        });
        Ok(Reply::ok(&RegionList {
            regions: regions.collect(),
        }))
    }
}

fn organization_shape(organization: &Organization) -> OrganizationShape<'_> {
    OrganizationShape {
        id: &organization.id,
        name: &organization.name,
        handle: &organization.id,
        plan: organization.plan.name(),
        created_at: Stamp(organization.created_at),
        updated_at: Stamp(organization.created_at),
        managed_by: "console",
    }
}
