//! Finds the resources of a command.

use super::Error;
use super::rules::Ask;
use crate::cli::common::{Connected, Scope};
use crate::cli::seen::{Kind, Seen};

/// A resource of a command.
#[derive(Debug)]
pub struct Target {
    pub kind: Kind,
    pub resource: Seen,
}

/// Resources by name, or by kind and selector.
#[derive(Debug, clap::Args)]
pub struct Targets {
    /// Resources, such as compute/orders; or one kind, with -l or --all
    #[arg(value_name = "KIND/NAME", required = true)]
    targets: Vec<String>,
    #[command(flatten)]
    scope: Scope,
    /// All resources of the kind
    #[arg(long, conflicts_with = "selector")]
    all: bool,
}

impl Targets {
    /// The resources that the arguments name or select.
    pub async fn find(&self, ask: &Ask, connected: &Connected) -> Result<Vec<Target>, Error> {
        let found = match (
            self.all || self.scope.selector.is_some(),
            self.targets.as_slice(),
        ) {
            (true, [kind]) if !kind.contains('/') => self.selected(ask, kind, connected).await?,
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
            (false, targets) => self.named(ask, targets, connected).await?,
        };
        match (ask, found.len()) {
            (Ask::Adopt(Some(_)) | Ask::NotCreated(_) | Ask::Revoked(_), 2..) => Err(Error::Usage(
                format!("{} with identifiers is for one resource", ask.verb()),
            )),
            _ => Ok(found),
        }
    }

    async fn named(
        &self,
        ask: &Ask,
        targets: &[String],
        connected: &Connected,
    ) -> Result<Vec<Target>, Error> {
        let namespace = self.scope.namespace(connected);
        let mut found = Vec::new();
        for target in targets {
            let (kind, name) = Kind::and_name(target)?;
            check(ask, &kind)?;
            let seen = kind.get(&connected.client, namespace, name).await;
            let seen = seen.map_err(|cause| Error::Read {
                what: target.clone(),
                cause,
            })?;
            let Some(resource) = seen else {
                return Err(Error::Refused(vec![format!(
                    "{target}: there is no such resource in namespace {}",
                    namespace.unwrap_or_default()
                )]));
            };
            found.push(Target { kind, resource });
        }
        Ok(found)
    }

    async fn selected(
        &self,
        ask: &Ask,
        kind: &str,
        connected: &Connected,
    ) -> Result<Vec<Target>, Error> {
        let kind = Kind::named(kind)?;
        check(ask, &kind)?;
        let listed = kind
            .list(
                &connected.client,
                self.scope.namespace(connected),
                &self.scope.list_params(),
            )
            .await;
        let listed = listed.map_err(|cause| Error::Read {
            what: kind.resource.plural.clone(),
            cause,
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
            found.push(Target { kind, resource });
        }
        Ok(found)
    }
}

fn check(ask: &Ask, kind: &Kind) -> Result<(), Error> {
    match ask.refused_kind(kind.name()) {
        Some(refused) => Err(Error::Usage(refused)),
        None => Ok(()),
    }
}
