//! The connection Secret in the spec of a Compute.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::api::{rules, schema};

/// The Secret that receives the parameters for connecting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::demand(
    "!has(self.credentialsFrom) || self.credentialsFrom.name != self.secretName",
    "credentialsFrom names the Secret that dbplane writes itself: name the one that has the user and the password",
).field_path(".credentialsFrom"))]
#[x_kube(validation = rules::demand(
    "!has(self.template) || self.template.all(name, !(name in ['computeID', 'database', 'dbname', 'direct-host', 'direct-uri', 'host', \
     'jdbc-uri', 'password', 'plain-uri', 'pooled-host', 'port', 'provider', 'sslmode', 'type', 'uri', 'user', 'username']))",
    "dbplane writes an entry of this name itself: give the entry in template another name",
).field_path(".template"))]
#[x_kube(validation = rules::placeholders_need("credentialsFrom", "has(self.credentialsFrom)", "user|password|uri|jdbc-uri|direct-uri"))]
#[x_kube(validation = rules::placeholders_need("database", "has(self.database)", "dbname|uri|jdbc-uri|direct-uri"))]
#[x_kube(validation = rules::placeholders_need("pooled: true", "self.pooled", "direct-host|direct-uri"))]
pub struct Connection {
    /// Name of the Secret, in this namespace. This resource creates and owns it. dbplane never writes to an existing Secret of another owner.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub secret_name: String,
    /// Name of the database to connect to, for the entries dbname, database, uri and jdbc-uri. When absent, the Secret does not have these entries. dbplane does not create the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    #[x_kube(validation = rules::database_name())]
    pub database: Option<String>,
    /// The Secret with the user and the password, in this namespace. When absent, the connection Secret has no user, password and uri. dbplane reads only these two entries, and does not create the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    pub credentials_from: Option<CredentialsFrom>,
    /// true: host, uri and jdbc-uri use the platform's connection pooler, and direct-host and direct-uri bypass it. If the platform shows no pooled host, all of them use the compute itself, and Synced is False.
    #[serde(default)]
    pub pooled: bool,
    /// Labels for the Secret, at most 32. Keys under dbplane.dev/ are reserved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    #[x_kube(validation = rules::metadata_keys(), validation = rules::unreserved_keys(), validation = rules::label_values())]
    pub labels: BTreeMap<String, String>,
    /// Annotations for the Secret, at most 32. Keys under dbplane.dev/ are reserved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    #[x_kube(validation = rules::metadata_keys(), validation = rules::unreserved_keys())]
    pub annotations: BTreeMap<String, String>,
    /// Further entries of the Secret's data, at most 32, by name. In their text, dbplane replaces {{ host }}, {{ port }}, {{ dbname }}, {{ user }}, {{ password }}, {{ sslmode }}, {{ uri }}, {{ jdbc-uri }}, {{ direct-host }}, {{ direct-uri }} and {{ computeID }} by the entries of these names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    #[x_kube(validation = rules::secret_data_keys())]
    #[x_kube(validation = rules::placeholders(&[
        "host", "port", "dbname", "user", "password", "sslmode", "uri", "jdbc-uri", "direct-host", "direct-uri", "computeID",
    ]))]
    pub template: BTreeMap<String, String>,
}

/// A Secret with a user and a password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsFrom {
    /// Name of the Secret, in this namespace.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub name: String,
    /// Key within its data for the name of the user (the database role); username when absent.
    #[serde(default = "username")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::secret_data_key())]
    pub username_key: String,
    /// Key within its data for the password; password when absent.
    #[serde(default = "password")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::secret_data_key())]
    pub password_key: String,
}

fn username() -> String {
    "username".to_owned()
}

fn password() -> String {
    "password".to_owned()
}
