//! Validates a manifest as the API server would, without an API server: with the same schema and
//! the same rules.
//!
//! It checks the kind, unknown fields, the schema (types, required fields, bounds) and the
//! CEL rules, after defaulting and in the API server's order. It then checks that each schedule has
//! a next time, which the API server cannot. If it gets the object to be replaced, it also checks
//! the rules for changes.
//!
//! It does not know admission policies and quotas of the cluster, or if the objects that a manifest
//! names exist.

mod advice;
mod document;
mod editor;
mod manifests;
mod metadata;
mod schedules;
mod schema;
mod shape;

use std::fmt;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::cel;
use serde_json::Value;

use crate::controller::definitions;

pub use document::Position;
pub use manifests::{CheckOutcome, Checked, Finding, objects};

/// The checks of a manifest. Each has a name for machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(into = "&'static str")]
pub enum Check {
    /// The document can be read.
    Yaml,
    /// The kind and version are known.
    Kind,
    /// The object has only fields of its kind.
    UnknownField,
    /// Types, required fields and bounds.
    Schema,
    /// The rules of the definitions, which compare fields and contain advice.
    Rule,
    /// Each schedule has a next time, and its time zone exists. The API server does not check this;
    /// the operator reports it.
    Schedule,
}

impl Check {
    pub fn name(self) -> &'static str {
        match self {
            Check::Yaml => "yaml",
            Check::Kind => "kind",
            Check::UnknownField => "unknown-field",
            Check::Schema => "schema",
            Check::Rule => "rule",
            Check::Schedule => "schedule",
        }
    }

    /// The text of a problem that this check found. The message already names an unknown field.
    fn fmt(self, path: &str, message: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, path) {
            (Check::UnknownField, _) | (_, "") => f.write_str(message),
            _ => write!(f, "{path}: {message}"),
        }
    }
}

impl From<Check> for &'static str {
    fn from(check: Check) -> Self {
        check.name()
    }
}

/// A reason why the API server would reject a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestProblem {
    /// The path in the manifest, such as `spec.size.fixed`; empty for the whole manifest.
    pub path: String,
    /// The API server's message, without the value that a rule rejects: it may be a misplaced
    /// password.
    pub message: String,
    /// Advice, if the message contains none.
    pub help: Option<String>,
    pub check: Check,
}

impl fmt::Display for ManifestProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.check.fmt(&self.path, &self.message, f)
    }
}

/// The definitions cannot be used as schemas. This is a bug of this program, not a problem of a
/// manifest.
#[derive(Debug, thiserror::Error)]
#[error("the schema of {kind} is unusable: {cause}")]
pub struct Unusable {
    kind: String,
    cause: String,
}

/// The compiled schemas and rules of every kind.
#[derive(Debug)]
pub struct Checker {
    kinds: Vec<KindSchema>,
    rules: cel::Validator,
}

#[derive(Debug)]
struct KindSchema {
    api_version: String,
    kind: String,
    schema: Value,
    validator: jsonschema::Validator,
    rules: cel::CompiledSchema,
}

impl Checker {
    /// Compiles the schemas of the definitions that this program installs.
    pub fn new() -> Result<Self, Unusable> {
        let kinds = definitions()
            .iter()
            .map(KindSchema::new)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            kinds,
            rules: cel::Validator::new(),
        })
    }

    /// Checks that `manifest` can be created, or can replace `old` if that is given.
    pub fn check(&self, manifest: &Value, old: Option<&Value>) -> Result<(), Vec<ManifestProblem>> {
        let kind = self.kind_of(manifest).map_err(|problem| vec![problem])?;
        let mut object = manifest.clone();
        shape::drop_nulls(&kind.schema, &mut object);
        let object = cel::apply_defaults(&kind.schema, &object);
        let mut problems = shape::problems(&kind.schema, &object);
        let found = schema::problems(&kind.validator, &object);
        // The API server does not evaluate the rules for an object of the wrong shape, and their
        // results would be unreliable.
        let rules_apply = found.iter().all(|problem| !problem.blocks_rules);
        problems.extend(found.into_iter().map(|found| found.problem));
        if rules_apply && let Err(errors) = self.rules.validate_compiled(&kind.rules, &object, old)
        {
            problems.extend(errors.into_iter().map(|error| ManifestProblem {
                // The rules of a whole resource name a field with a dot before it.
                path: error.field_path.trim_start_matches('.').to_owned(),
                message: format!("Invalid value: {}", error.message),
                help: None,
                check: Check::Rule,
            }));
        }
        if problems.is_empty() {
            problems = schedules::problems(&kind.kind, &object["spec"]);
        }
        for problem in &mut problems {
            problem.help = advice::help(&kind.schema, &object, problem);
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    fn kind_of(&self, manifest: &Value) -> Result<&KindSchema, ManifestProblem> {
        let api_version = manifest["apiVersion"].as_str().unwrap_or_default();
        let kind = manifest["kind"].as_str().unwrap_or_default();
        let (path, message) = match self.kinds.iter().find(|known| known.kind == kind) {
            Some(known) if known.api_version == api_version => return Ok(known),
            Some(known) => {
                let message = format!(
                    "{api_version:?} is not a version of {kind}; write {}",
                    known.api_version
                );
                ("apiVersion", message)
            }
            None => {
                let known: Vec<&str> = self.kinds.iter().map(|known| known.kind.as_str()).collect();
                let message = format!(
                    "{kind:?} is not a kind of dbplane; it has {}",
                    known.join(", ")
                );
                ("kind", message)
            }
        };
        Err(ManifestProblem {
            path: path.to_owned(),
            message,
            help: None,
            check: Check::Kind,
        })
    }
}

impl KindSchema {
    fn new(crd: &CustomResourceDefinition) -> Result<Self, Unusable> {
        let kind = crd.spec.names.kind.clone();
        let unusable = |cause: String| Unusable {
            kind: kind.clone(),
            cause,
        };
        let version = crd
            .spec
            .versions
            .first()
            .ok_or_else(|| unusable("it has no version".to_owned()))?;
        let schema = version
            .schema
            .as_ref()
            .and_then(|schema| schema.open_api_v3_schema.as_ref());
        let mut schema =
            serde_json::to_value(schema).map_err(|cause| unusable(cause.to_string()))?;
        let rules = cel::compile_schema(&schema);
        // A definition leaves metadata to the API server.
        schema["properties"]["metadata"] = metadata::schema();
        let validator = schema::compile(&schema).map_err(&unusable)?;
        let api_version = format!("{}/{}", crd.spec.group, version.name);
        Ok(Self {
            api_version,
            kind,
            schema,
            validator,
            rules,
        })
    }
}
