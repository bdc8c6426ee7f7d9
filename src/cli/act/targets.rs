//! Finds the resources of a command.

use super::Error;
use super::rules::ResourceRequest;
use crate::cli::common::{Connected, ScopeArgs, bad_selector};
use crate::cli::resource::{ObservedResource, ResourceKind};

/// A resource of a command.
#[derive(Debug)]
pub struct RequestTarget {
    pub kind: ResourceKind,
    pub resource: ObservedResource,
}

/// Resources by name, or by kind and selector.
#[derive(Debug, clap::Args)]
pub struct Targets {
    /// Resources, such as compute/orders or compute orders; or one kind, with -l or --all
    #[arg(value_name = "KIND/NAME", required = true)]
    targets: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// All resources of the kind
    #[arg(long, conflicts_with = "selector")]
    all: bool,
}

impl Targets {
    /// The resources that the arguments name or select.
    pub async fn find(
        &self,
        request: &ResourceRequest,
        connected: &Connected,
    ) -> Result<Vec<RequestTarget>, Error> {
        let found = match (
            self.all || self.scope.selector.is_some(),
            self.targets.as_slice(),
        ) {
            (true, [kind]) if !kind.contains('/') => {
                self.selected(request, kind, connected).await?
            }
            (true, _) => {
                return Err(Error::Usage(
                    "with -l or --all, name one kind, such as compute".to_owned(),
                ));
            }
            (false, _) if self.scope.all_namespaces => {
                return Err(Error::Usage(
                    "-A goes with -l or --all, and with one kind".to_owned(),
                ));
            }
            (false, targets) => self.named(request, targets, connected).await?,
        };
        match (request, found.len()) {
            (
                ResourceRequest::Adopt(Some(_))
                | ResourceRequest::NotCreated(_)
                | ResourceRequest::Revoked(_),
                2..,
            ) => Err(Error::Usage(format!(
                "{} with identifiers is for one resource",
                request.verb()
            ))),
            _ => Ok(found),
        }
    }

    async fn named(
        &self,
        request: &ResourceRequest,
        targets: &[String],
        connected: &Connected,
    ) -> Result<Vec<RequestTarget>, Error> {
        let namespace = self.scope.namespace(connected);
        let mut found = Vec::new();
        for (kind, name) in ResourceKind::and_names(targets)? {
            check(request, &kind)?;
            let target = format!("{}/{name}", kind.name().to_lowercase());
            let read = kind.get(&connected.client, namespace, name).await;
            let read = read.map_err(|cause| Error::Read {
                what: target.clone(),
                cause,
            })?;
            let Some(resource) = read else {
                return Err(Error::Refused(vec![format!(
                    "{target}: there is no such resource in namespace {}",
                    namespace.unwrap_or_default()
                )]));
            };
            found.push(RequestTarget { kind, resource });
        }
        Ok(found)
    }

    async fn selected(
        &self,
        request: &ResourceRequest,
        kind: &str,
        connected: &Connected,
    ) -> Result<Vec<RequestTarget>, Error> {
        let kind = ResourceKind::named(kind)?;
        check(request, &kind)?;
        let (namespace, params) = (self.scope.namespace(connected), self.scope.list_params());
        let listed = kind.list(&connected.client, namespace, &params).await;
        let listed = listed.map_err(|cause| match bad_selector(&params, &cause) {
            Some(message) => Error::Usage(message),
            None => Error::Read {
                what: kind.resource.plural.clone(),
                cause,
            },
        })?;
        if listed.is_empty() {
            return Err(Error::Refused(vec![format!(
                "no {} is selected",
                kind.name()
            )]));
        }
        let mut found = Vec::new();
        for resource in listed {
            let kind = kind.clone();
            found.push(RequestTarget { kind, resource });
        }
        Ok(found)
    }
}

fn check(request: &ResourceRequest, kind: &ResourceKind) -> Result<(), Error> {
    match request.refused_kind(kind.name()) {
        Some(refused) => Err(Error::Usage(refused)),
        None => Ok(()),
    }
}
