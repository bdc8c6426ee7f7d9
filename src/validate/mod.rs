//! The API server's verdict on a manifest without an API server: the same schema and the same rules, run here.
//!
//! What it checks: the kind, unknown fields, the schema (types, required fields, enums, bounds) and the CEL rules,
//! after defaulting, and in the order of the API server; then, which the API server cannot, whether schedules ever come. With the object that is to be replaced at hand it checks the
//! rules about changes too.
//!
//! What it cannot know: what the cluster adds (admission policies, quotas), and whether what the manifest names exists.

mod advice;
mod document;
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
pub use manifests::{Checked, Finding, Outcome, objects};

/// What a manifest is checked for; each has a name that machines know it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(into = "&'static str")]
pub enum Check {
    /// That it can be read.
    Yaml,
    /// That its kind and version are known.
    Kind,
    /// That it has no other fields than those of its kind.
    UnknownField,
    /// Types, required fields, enums and bounds.
    Schema,
    /// The rules of the definitions, which compare fields and say what to write.
    Rule,
    /// That each schedule comes at some time, and its time zone exists. The API server does not check that; the operator reports it.
    Schedule,
}

impl Check {
    pub const ALL: [Check; 6] =
        [Check::Yaml, Check::Kind, Check::UnknownField, Check::Schema, Check::Rule, Check::Schedule];

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

    /// A problem found by this check, for people. An unknown field is named in the message.
    fn fmt(self, path: &str, message: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, path) {
            (Check::UnknownField, _) | (_, "") => f.write_str(message),
            _ => write!(f, "{path}: {message}"),
        }
    }

    pub fn describe(self) -> &'static str {
        match self {
            Check::Yaml => "The document is YAML or JSON, and sets no field twice.",
            Check::Kind => "Kind and version are those of a resource of dbplane.",
            Check::UnknownField => "The object has no fields that its kind does not have.",
            Check::Schema => "Types, required fields, supported values and bounds are those of the definition.",
            Check::Rule => "The validation rules of the definition hold.",
            Check::Schedule => "Each schedule comes at some time, and its time zone exists.",
        }
    }
}

impl From<Check> for &'static str {
    fn from(check: Check) -> Self {
        check.name()
    }
}

/// One reason why the API server would refuse a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where in the manifest, such as `spec.size.fixed`; empty where it is the manifest as a whole.
    pub path: String,
    /// What is wrong there, in the API server's words, but without the value that a rule refuses: it may be a
    /// password at a wrong place.
    pub message: String,
    /// What to do, where the message does not say it.
    pub help: Option<String>,
    pub check: Check,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.check.fmt(&self.path, &self.message, f)
    }
}

/// The definitions cannot be used as schemas. It says something about this program, never about a manifest.
#[derive(Debug, thiserror::Error)]
#[error("the schema of {kind} is unusable: {cause}")]
pub struct Unusable {
    kind: String,
    cause: String,
}

/// The compiled schemas and rules of every kind.
#[derive(Debug)]
pub struct Checker {
    kinds: Vec<Kind>,
    rules: cel::Validator,
}

#[derive(Debug)]
struct Kind {
    api_version: String,
    kind: String,
    schema: Value,
    validator: jsonschema::Validator,
    rules: cel::CompiledSchema,
}

impl Checker {
    /// Compiles the schemas of the definitions that this program installs.
    pub fn new() -> Result<Self, Unusable> {
        let kinds = definitions().iter().map(Kind::new).collect::<Result<_, _>>()?;
        Ok(Self { kinds, rules: cel::Validator::new() })
    }

    /// Checks that `manifest` can be created or, where `old` is given, that it can replace `old`.
    pub fn check(&self, manifest: &Value, old: Option<&Value>) -> Result<(), Vec<Problem>> {
        let kind = self.kind_of(manifest).map_err(|problem| vec![problem])?;
        let mut object = manifest.clone();
        shape::drop_nulls(&kind.schema, &mut object);
        let object = cel::apply_defaults(&kind.schema, &object);
        let mut problems = shape::problems(&kind.schema, &object);
        let found = schema::problems(&kind.validator, &object);
        // The API server does not run the rules over what has the wrong shape, and neither could they be trusted there.
        let rules_apply = found.iter().all(|problem| !problem.blocks_rules);
        problems.extend(found.into_iter().map(|found| found.problem));
        if rules_apply && let Err(errors) = self.rules.validate_compiled(&kind.rules, &object, old) {
            problems.extend(errors.into_iter().map(|error| Problem {
                path: error.field_path,
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
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    fn kind_of(&self, manifest: &Value) -> Result<&Kind, Problem> {
        let text = |field: &str| manifest.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let problem = |path: &str, message| Problem { path: path.to_owned(), message, help: None, check: Check::Kind };
        match self.kinds.iter().find(|known| known.kind == kind) {
            Some(known) if known.api_version == api_version => Ok(known),
            Some(known) => {
                let message = format!("{api_version:?} is not a version of {kind}; write {}", known.api_version);
                Err(problem("apiVersion", message))
            }
            None => {
                let known: Vec<&str> = self.kinds.iter().map(|known| known.kind.as_str()).collect();
                let message = format!("{kind:?} is not a kind of dbplane; it has {}", known.join(", "));
                Err(problem("kind", message))
            }
        }
    }
}

impl Kind {
    fn new(crd: &CustomResourceDefinition) -> Result<Self, Unusable> {
        let kind = crd.spec.names.kind.clone();
        let unusable = |cause: String| Unusable { kind: kind.clone(), cause };
        let version = crd.spec.versions.first().ok_or_else(|| unusable("it has no version".to_owned()))?;
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        let mut schema = serde_json::to_value(schema).map_err(|cause| unusable(cause.to_string()))?;
        let rules = cel::compile_schema(&schema);
        // A definition leaves metadata to the API server.
        schema["properties"]["metadata"] = metadata::schema();
        let validator = schema::compile(&schema).map_err(&unusable)?;
        let api_version = format!("{}/{}", crd.spec.group, version.name);
        Ok(Self { api_version, kind, schema, validator, rules })
    }
}
