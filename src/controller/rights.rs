//! Asks the API server which rights a user of the cluster has on dbplane's resources in a
//! namespace.

use futures::future::try_join_all;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use kube::api::PostParams;
use kube::{Api, Client, Resource};

use super::environment::{Kind, KindVisitor, Kinds};
use super::object::Managed;
use super::registry::AllKinds;
use crate::api::GROUP;

/// Without all of these in a namespace, dbplane can do nothing for its resources, nor add or remove
/// their finalizers.
const NEEDED: [&str; 3] = ["list", "watch", "patch"];

/// The user whose rights are checked.
#[derive(Clone, Copy, Debug)]
pub enum Who<'a> {
    /// The user of the client itself.
    Me,
    /// A ServiceAccount of this namespace and name.
    ServiceAccount { namespace: &'a str, name: &'a str },
}

/// The needed rights that are left in a namespace, such as `patch computes`. A right counts as left
/// if the API server cannot decide.
///
/// # Errors
/// Errors of the API server, also if the client may not ask.
pub async fn left(
    client: &Client,
    who: Who<'_>,
    namespace: &str,
) -> Result<Vec<String>, kube::Error> {
    let mut resources = Plurals(Vec::new());
    AllKinds::each(&mut resources);
    let rights = resources
        .0
        .iter()
        .flat_map(|plural| NEEDED.map(|verb| (verb, plural)));
    let asked = rights.map(async |(verb, plural)| {
        let attributes = ResourceAttributes {
            group: Some(GROUP.to_owned()),
            namespace: Some(namespace.to_owned()),
            resource: Some(plural.clone()),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        let status = review(client, who, attributes).await?;
        let is_left = !is_refused(status.as_ref());
        Ok::<_, kube::Error>(is_left.then(|| format!("{verb} {plural}")))
    });
    Ok(try_join_all(asked).await?.into_iter().flatten().collect())
}

struct Plurals(Vec<String>);

impl KindVisitor for Plurals {
    fn visit<K: Kind>(&mut self) {
        self.0
            .extend(K::Object::is_namespaced().then(|| K::Object::plural(&()).into_owned()));
    }
}

async fn review(
    client: &Client,
    who: Who<'_>,
    attributes: ResourceAttributes,
) -> Result<Option<SubjectAccessReviewStatus>, kube::Error> {
    let params = PostParams::default();
    let resource_attributes = Some(attributes);
    match who {
        Who::Me => {
            let spec = SelfSubjectAccessReviewSpec {
                resource_attributes,
                ..SelfSubjectAccessReviewSpec::default()
            };
            let review = SelfSubjectAccessReview {
                spec,
                ..SelfSubjectAccessReview::default()
            };
            Ok(Api::<SelfSubjectAccessReview>::all(client.clone())
                .create(&params, &review)
                .await?
                .status)
        }
        Who::ServiceAccount { namespace, name } => {
            let groups = [
                "system:serviceaccounts",
                &format!("system:serviceaccounts:{namespace}"),
                "system:authenticated",
            ];
            let spec = SubjectAccessReviewSpec {
                resource_attributes,
                user: Some(format!("system:serviceaccount:{namespace}:{name}")),
                groups: Some(groups.map(str::to_owned).to_vec()),
                ..SubjectAccessReviewSpec::default()
            };
            let review = SubjectAccessReview {
                spec,
                ..SubjectAccessReview::default()
            };
            Ok(Api::<SubjectAccessReview>::all(client.clone())
                .create(&params, &review)
                .await?
                .status)
        }
    }
}

/// True if the right is missing. An evaluation error is no proof, unless it only says that the role
/// of a binding is missing.
fn is_refused(status: Option<&SubjectAccessReviewStatus>) -> bool {
    status.is_some_and(|status| {
        !status.allowed
            && status
                .evaluation_error
                .as_deref()
                .is_none_or(only_lacks_roles)
    })
}

/// RBAC reports bindings whose roles are gone, as those of a namespace that is being deleted are.
fn only_lacks_roles(error: &str) -> bool {
    let Some(errors) = error.strip_prefix("RBAC: ") else {
        return false;
    };
    errors
        .trim_matches(['[', ']'])
        .split(", ")
        .all(|error| error.contains("role") && error.ends_with(" not found"))
}

/// The namespace and the name of the ServiceAccount that `client` acts as; `None` if it is another
/// user.
///
/// # Errors
/// Errors of the API server.
pub async fn service_account(client: &Client) -> Result<Option<(String, String)>, kube::Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await?;
    let user = review
        .status
        .and_then(|status| status.user_info?.username)
        .unwrap_or_default();
    Ok(named(&user))
}

fn named(user: &str) -> Option<(String, String)> {
    let (namespace, name) = user
        .strip_prefix("system:serviceaccount:")?
        .split_once(':')?;
    Some((namespace.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_to_be_refused_is_refused() {
        let role = |name: &str| format!("role.rbac.authorization.k8s.io \"{name}\" not found");
        for (allowed, error, refused) in [
            (false, None, true),
            (true, None, false),
            (false, Some(format!("RBAC: {}", role("dbplane"))), true),
            (
                false,
                Some(format!(
                    "RBAC: [{}, {}]",
                    role("dbplane"),
                    role("dbplane-secrets")
                )),
                true,
            ),
            (
                false,
                Some("RBAC: clusterrole.rbac.authorization.k8s.io \"a\" not found".to_owned()),
                true,
            ),
            (
                false,
                Some(format!("RBAC: [{}, the store is slow]", role("dbplane"))),
                false,
            ),
            (false, Some("webhook: timeout".to_owned()), false),
            (true, Some(format!("RBAC: {}", role("dbplane"))), false),
        ] {
            let status = SubjectAccessReviewStatus {
                allowed,
                evaluation_error: error.clone(),
                ..SubjectAccessReviewStatus::default()
            };
            assert_eq!(is_refused(Some(&status)), refused, "{allowed} {error:?}");
        }
        assert!(!is_refused(None));
    }

    #[test]
    fn a_service_account_is_told_by_its_user() {
        assert_eq!(
            named("system:serviceaccount:a:b"),
            Some(("a".to_owned(), "b".to_owned()))
        );
        assert_eq!(named("ada"), None);
    }
}
