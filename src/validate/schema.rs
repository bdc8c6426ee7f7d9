//! Checks the schema: types, required fields, enums and bounds, with the API server's messages.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;

use super::{Check, Problem};

/// A violation of the schema.
pub(super) struct Found {
    pub problem: Problem,
    /// True if the API server then does not evaluate the rules.
    pub blocks_rules: bool,
    is_type: bool,
}

/// Kubernetes uses OpenAPI 3.0 schemas. For the keywords in use they are equivalent to draft 4.
pub(super) fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft4)
        .should_validate_formats(true)
        .should_ignore_unknown_formats(true)
        .build(schema)
        .map_err(|error| error.to_string())
}

/// The violations of the schema by `object`.
pub(super) fn problems(validator: &jsonschema::Validator, object: &Value) -> Vec<Found> {
    let mut found: Vec<Found> = validator
        .iter_errors(object)
        .map(|error| found(&error))
        .collect();
    // A value of the wrong type is never valid otherwise, so only the type is reported.
    let wrong_types: Vec<String> = found
        .iter()
        .filter(|found| found.is_type)
        .map(|found| found.problem.path.clone())
        .collect();
    found.retain(|found| found.is_type || !wrong_types.contains(&found.problem.path));
    found
}

fn found(error: &ValidationError<'_>) -> Found {
    let path = path(error.instance_path());
    let value = error.instance();
    let in_body = |what: String| format!("Invalid value: {value}: {path} in body {what}");
    let (message, blocks_rules) = match error.kind() {
        Kind::Required { property } => {
            let path = join(&path, property.as_str().unwrap_or_default());
            return Found::new(path, "Required value".to_owned(), true);
        }
        Kind::Enum { options } => {
            let options: Vec<String> = options
                .as_array()
                .into_iter()
                .flatten()
                .map(Value::to_string)
                .collect();
            (
                format!(
                    "Unsupported value: {value}: supported values: {}",
                    options.join(", ")
                ),
                true,
            )
        }
        Kind::MaxLength { limit } => (
            format!("Too long: may not be more than {limit} bytes"),
            true,
        ),
        Kind::MaxItems { limit } | Kind::MaxProperties { limit } => {
            (format!("Too many: must have at most {limit} items"), true)
        }
        Kind::MinItems { limit } => {
            let items = value.as_array().map_or(0, Vec::len);
            (
                format!(
                    "Invalid value: {items}: {path} in body should have at least {limit} items"
                ),
                false,
            )
        }
        Kind::MinLength { limit } => (
            in_body(format!("should be at least {limit} chars long")),
            false,
        ),
        Kind::Maximum { limit } => (
            in_body(format!("should be less than or equal to {}", number(limit))),
            false,
        ),
        Kind::Minimum { limit } => (
            in_body(format!(
                "should be greater than or equal to {}",
                number(limit)
            )),
            false,
        ),
        Kind::Type { kind } => {
            return Found {
                is_type: true,
                ..Found::new(path.clone(), wrong_type(&path, kind, value), true)
            };
        }
        _ => (format!("Invalid value: {}", error.masked()), false),
    };
    Found::new(path, message, blocks_rules)
}

impl Found {
    fn new(path: String, message: String, blocks_rules: bool) -> Self {
        Self {
            problem: Problem {
                path,
                message,
                help: None,
                check: Check::Schema,
            },
            blocks_rules,
            is_type: false,
        }
    }
}

/// Names the type instead of the value, like the API server, because a misplaced value may be
/// secret.
fn wrong_type(path: &str, expected: &TypeKind, value: &Value) -> String {
    let expected = match expected {
        TypeKind::Single(expected) => expected.to_string(),
        TypeKind::Multiple(_) => "another kind".to_owned(),
    };
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("Invalid value: {found:?}: {path} in body must be of type {expected}: {found:?}")
}

/// Definitions store limits as floating-point numbers. Ours are whole, and printed so.
fn number(limit: &Value) -> String {
    limit
        .as_f64()
        .map_or_else(|| limit.to_string(), |limit| limit.to_string())
}

fn path(location: &Location) -> String {
    let mut path = String::new();
    for segment in location {
        match segment {
            LocationSegment::Property(name) => path = join(&path, &name),
            LocationSegment::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
