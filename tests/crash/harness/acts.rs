//! The actions of a scenario at a site.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::scenarios::Act;
use super::site::Site;
use crate::support::{Result, aged};

/// Longer than the periods that scenarios declare.
const AGE: SignedDuration = SignedDuration::from_hours(72);

impl Site {
    /// Performs an act. References to an account are set to this site's account.
    pub async fn perform(&self, act: &Act) -> Result<()> {
        match act {
            Act::Create(manifest) => self.declare(manifest).await,
            Act::Change(kind, name, spec) => {
                self.objects.patch(kind, name, &json!({"spec": spec})).await
            }
            Act::Annotate(kind, name, annotation, value) => {
                let patch = json!({"metadata": {"annotations": {*annotation: value}}});
                self.objects.patch(kind, name, &patch).await
            }
            Act::Delete(kind @ ("Compute" | "ProjectKey"), name) => {
                self.objects.delete_held(kind, name).await
            }
            Act::Delete(kind, name) => self.objects.delete(kind, name).await,
            Act::DeleteNamespace => {
                self.objects
                    .delete("Namespace", &self.objects.namespace)
                    .await
            }
            Act::Age(kind, name) => self.age(kind, name).await,
        }
    }

    async fn age(&self, kind: &str, name: &str) -> Result<()> {
        let object = self.objects.get(kind, name).await?.unwrap_or_default();
        self.objects
            .patch_status(kind, name, &aged(&object, AGE)?)
            .await
    }

    pub async fn declare(&self, manifest: &Value) -> Result<()> {
        let mut manifest = manifest.clone();
        let refers = if manifest["kind"] == "ReadReplicaSet" {
            &mut manifest["spec"]["template"]["spec"]
        } else {
            &mut manifest["spec"]
        };
        refers["accountRef"] = if self.elsewhere {
            json!({"kind": "ClusterAccount", "name": self.objects.namespace})
        } else {
            json!({"name": "prod"})
        };
        self.objects.create(&manifest).await
    }
}
