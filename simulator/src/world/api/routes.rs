//! The table of routes, and the lookup of a path in it.

use crate::world::Profile;
use crate::world::api::errors::Refusal;
use crate::world::api::message::{Method, decode};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    ListProjects,
    CreateProject,
    ListSharedProjects,
    GetProject,
    UpdateProject,
    DeleteProject,
    RecoverProject,
    GetConnectionUri,
    ListBranches,
    CreateBranch,
    GetBranch,
    UpdateBranch,
    DeleteBranch,
    SetDefaultBranch,
    RestoreBranch,
    GetBranchSchema,
    ListBranchComputes,
    ListBranchDatabases,
    ListBranchRoles,
    RevealPassword,
    ListComputes,
    CreateCompute,
    GetCompute,
    UpdateCompute,
    DeleteCompute,
    StartCompute,
    SuspendCompute,
    RestartCompute,
    ListOperations,
    GetOperation,
    ListPersonalKeys,
    CreatePersonalKey,
    RevokePersonalKey,
    ListOrganizationKeys,
    CreateOrganizationKey,
    RevokeOrganizationKey,
    GetOrganization,
    ListMembers,
    GetMe,
    ListMyOrganizations,
    GetAuth,
    ListRegions,
}

/// The profiles that have a route: `Spec` is in all, `Family` in all but the minimal one, `Public`
/// only in the public one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offer {
    Spec,
    Family,
    Public,
}

impl Offer {
    fn is_in(self, profile: Profile) -> bool {
        match self {
            Spec => true,
            Family => profile.adds(),
            Public => !profile.obeys(),
        }
    }
}

struct Route(Method, &'static str, Offer, Call);

use Method::{Delete, Get, Patch, Post};
use Offer::{Family, Public, Spec};

/// A literal segment must come before a placeholder that would match it as well.
#[rustfmt::skip]
const ROUTES: &[Route] = &[
    Route(Get,    "/projects",                                                           Spec,   Call::ListProjects),
    Route(Post,   "/projects",                                                           Family, Call::CreateProject),
    Route(Get,    "/projects/shared",                                                    Family, Call::ListSharedProjects),
    Route(Get,    "/projects/{project}",                                                 Family, Call::GetProject),
    Route(Patch,  "/projects/{project}",                                                 Family, Call::UpdateProject),
    Route(Delete, "/projects/{project}",                                                 Family, Call::DeleteProject),
    Route(Post,   "/projects/{project}/recover",                                         Public, Call::RecoverProject),
    Route(Get,    "/projects/{project}/connection_uri",                                  Family, Call::GetConnectionUri),
    Route(Get,    "/projects/{project}/branches",                                        Family, Call::ListBranches),
    Route(Post,   "/projects/{project}/branches",                                        Family, Call::CreateBranch),
    Route(Get,    "/projects/{project}/branches/{branch}",                               Family, Call::GetBranch),
    Route(Patch,  "/projects/{project}/branches/{branch}",                               Public, Call::UpdateBranch),
    Route(Delete, "/projects/{project}/branches/{branch}",                               Family, Call::DeleteBranch),
    Route(Post,   "/projects/{project}/branches/{branch}/set_as_default",                Public, Call::SetDefaultBranch),
    Route(Post,   "/projects/{project}/branches/{branch}/restore",                       Public, Call::RestoreBranch),
    Route(Get,    "/projects/{project}/branches/{branch}/schema",                        Public, Call::GetBranchSchema),
    Route(Get,    "/projects/{project}/branches/{branch}/endpoints",                     Family, Call::ListBranchComputes),
    Route(Get,    "/projects/{project}/branches/{branch}/databases",                     Family, Call::ListBranchDatabases),
    Route(Get,    "/projects/{project}/branches/{branch}/roles",                         Family, Call::ListBranchRoles),
    Route(Get,    "/projects/{project}/branches/{branch}/roles/{role}/reveal_password",  Family, Call::RevealPassword),
    Route(Get,    "/projects/{project}/endpoints",                                       Spec,   Call::ListComputes),
    Route(Post,   "/projects/{project}/endpoints",                                       Spec,   Call::CreateCompute),
    Route(Get,    "/projects/{project}/endpoints/{endpoint}",                            Family, Call::GetCompute),
    Route(Patch,  "/projects/{project}/endpoints/{endpoint}",                            Spec,   Call::UpdateCompute),
    Route(Delete, "/projects/{project}/endpoints/{endpoint}",                            Spec,   Call::DeleteCompute),
    Route(Post,   "/projects/{project}/endpoints/{endpoint}/start",                      Family, Call::StartCompute),
    Route(Post,   "/projects/{project}/endpoints/{endpoint}/suspend",                    Family, Call::SuspendCompute),
    Route(Post,   "/projects/{project}/endpoints/{endpoint}/restart",                    Spec,   Call::RestartCompute),
    Route(Get,    "/projects/{project}/operations",                                      Family, Call::ListOperations),
    Route(Get,    "/projects/{project}/operations/{operation}",                          Family, Call::GetOperation),
    Route(Get,    "/api_keys",                                                           Family, Call::ListPersonalKeys),
    Route(Post,   "/api_keys",                                                           Family, Call::CreatePersonalKey),
    Route(Delete, "/api_keys/{key}",                                                     Family, Call::RevokePersonalKey),
    Route(Get,    "/organizations/{organization}",                                       Family, Call::GetOrganization),
    Route(Get,    "/organizations/{organization}/members",                               Family, Call::ListMembers),
    Route(Get,    "/organizations/{organization}/api_keys",                              Family, Call::ListOrganizationKeys),
    Route(Post,   "/organizations/{organization}/api_keys",                              Spec,   Call::CreateOrganizationKey),
    Route(Delete, "/organizations/{organization}/api_keys/{key}",                        Family, Call::RevokeOrganizationKey),
    Route(Get,    "/users/me",                                                           Family, Call::GetMe),
    Route(Get,    "/users/me/organizations",                                             Family, Call::ListMyOrganizations),
    Route(Get,    "/auth",                                                               Family, Call::GetAuth),
    Route(Get,    "/regions",                                                            Family, Call::ListRegions),
];

/// The decoded ids in a path; ids that the route lacks are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ids {
    pub organization: String,
    pub project: String,
    pub branch: String,
    pub endpoint: String,
    pub operation: String,
    pub key: String,
    pub role: String,
}

impl Ids {
    fn set(&mut self, placeholder: &str, value: String) {
        match placeholder {
            "{organization}" => self.organization = value,
            "{project}" => self.project = value,
            "{branch}" => self.branch = value,
            "{endpoint}" => self.endpoint = value,
            "{operation}" => self.operation = value,
            "{role}" => self.role = value,
            _ => self.key = value,
        }
    }
}

/// Finds the call for a method and a path: 404 if no route has the path, 405 if none has it with
/// this method.
pub fn resolve(method: Method, path: &str, profile: Profile) -> Result<(Call, Ids), Refusal> {
    let mut path_known = false;
    for Route(its_method, template, offer, call) in ROUTES {
        if !offer.is_in(profile) {
            continue;
        }
        let Some(ids) = matches(template, path) else {
            continue;
        };
        path_known = true;
        if *its_method == method {
            check(&ids, profile)?;
            return Ok((*call, ids));
        }
    }
    if path_known {
        Err(Refusal::MethodNotAllowed)
    } else {
        Err(Refusal::RouteUnknown)
    }
}

fn matches(template: &str, path: &str) -> Option<Ids> {
    let path = path
        .strip_suffix('/')
        .filter(|rest| !rest.is_empty())
        .unwrap_or(path);
    let mut ids = Ids::default();
    let mut given = path.split('/');
    for expected in template.split('/') {
        let segment = given.next()?;
        if expected.starts_with('{') {
            if segment.is_empty() {
                return None;
            }
            ids.set(expected, decode(segment));
        } else if expected != segment {
            return None;
        }
    }
    given.next().is_none().then_some(ids)
}

/// Ids must match the patterns of the public API. In the minimal profile, an odd id is simply not
/// found.
fn check(ids: &Ids, profile: Profile) -> Result<(), Refusal> {
    if !profile.adds() {
        return Ok(());
    }
    let all = [
        &ids.organization,
        &ids.project,
        &ids.branch,
        &ids.endpoint,
        &ids.operation,
    ];
    match all.into_iter().find(|id| !id.is_empty() && !is_path_id(id)) {
        Some(id) => Err(Refusal::invalid(format!(
            "the id {id:?} does not match ^[a-z0-9-]{{1,60}}$"
        ))),
        None => Ok(()),
    }
}

/// True if an id may be part of a path: 1 to 60 lower case letters, digits and hyphens.
pub fn is_path_id(id: &str) -> bool {
    (1..=60).contains(&id.len())
        && id
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimal_has_the_seven_routes_of_the_specification() {
        let offered: Vec<&str> = ROUTES
            .iter()
            .filter(|route| route.2 == Spec)
            .map(|route| route.1)
            .collect();
        assert_eq!(offered.len(), 7);
    }

    #[test]
    fn resolution() {
        use Profile::{Default, Minimal};
        let cases = [
            (Get, "/projects", Default, Ok(Call::ListProjects)),
            (Get, "/projects/", Default, Ok(Call::ListProjects)),
            (
                Get,
                "/projects/shared",
                Default,
                Ok(Call::ListSharedProjects),
            ),
            (Get, "/projects/p", Default, Ok(Call::GetProject)),
            (Get, "/projects/p", Minimal, Err(Refusal::RouteUnknown)),
            (
                Patch,
                "/projects/p/branches/b",
                Profile::Public,
                Ok(Call::UpdateBranch),
            ),
            (
                Patch,
                "/projects/p/branches/b",
                Default,
                Err(Refusal::MethodNotAllowed),
            ),
            (
                Get,
                "/projects/p/endpoints/e",
                Minimal,
                Err(Refusal::MethodNotAllowed),
            ),
            (
                Delete,
                "/projects/p/endpoints/e",
                Minimal,
                Ok(Call::DeleteCompute),
            ),
            (Get, "//projects", Default, Err(Refusal::RouteUnknown)),
            (
                Get,
                "/projects//endpoints",
                Default,
                Err(Refusal::RouteUnknown),
            ),
            (Get, "/nowhere", Default, Err(Refusal::RouteUnknown)),
            (
                Method::Other,
                "/projects",
                Default,
                Err(Refusal::MethodNotAllowed),
            ),
        ];
        for (method, path, profile, expected) in cases {
            assert_eq!(
                resolve(method, path, profile).map(|(call, _)| call),
                expected,
                "{method:?} {path} {profile:?}"
            );
        }
    }

    #[test]
    fn ids_are_decoded_and_checked() {
        let (_, ids) = resolve(Get, "/projects/aged%2Dwind/endpoints", Profile::Default).unwrap();
        assert_eq!(ids.project, "aged-wind");
        assert!(matches!(
            resolve(Get, "/projects/Aged_wind", Profile::Default),
            Err(Refusal::Invalid(_))
        ));
    }
}
