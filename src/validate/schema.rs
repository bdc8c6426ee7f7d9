//! Checks the schema: types, required fields and bounds, with the API server's messages.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;

use super::{Check, ManifestProblem};

/// A violation of the schema.
pub(super) struct Violation {
    pub problem: ManifestProblem,
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
pub(super) fn problems(validator: &jsonschema::Validator, object: &Value) -> Vec<Violation> {
    let mut found: Vec<Violation> = validator
        .iter_errors(object)
        .map(|error| violation(&error))
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

fn violation(error: &ValidationError<'_>) -> Violation {
    let path = path(error.instance_path());
    let value = error.instance();
    match error.kind() {
        Kind::Required { property } => {
            let path = join(&path, property.as_str().unwrap_or_default());
            Violation::blocking(path, "Required value".to_owned())
        }
        Kind::Type { kind } => {
            let message = wrong_type(&path, kind, value);
            Violation {
                is_type: true,
                ..Violation::blocking(path, message)
            }
        }
        Kind::MaxLength { limit } => Violation::blocking(
            path,
            format!("Too long: may not be more than {limit} bytes"),
        ),
        Kind::MaxItems { limit } | Kind::MaxProperties { limit } => {
            Violation::blocking(path, format!("Too many: must have at most {limit} items"))
        }
        kind => match below_or_above(kind, value, &path) {
            Some(message) => Violation::new(path, message),
            None => Violation::new(path, format!("Invalid value: {}", error.masked())),
        },
    }
}

/// The message for a value outside of bounds that do not block the rules.
fn below_or_above(kind: &Kind, value: &Value, path: &str) -> Option<String> {
    let (value, bound) = match kind {
        Kind::MinItems { limit } => {
            let items = value.as_array().map_or(0, Vec::len);
            (items.to_string(), format!("have at least {limit} items"))
        }
        Kind::MinLength { limit } => (value.to_string(), format!("be at least {limit} chars long")),
        Kind::Maximum { limit } => (
            value.to_string(),
            format!("be less than or equal to {}", number(limit)),
        ),
        Kind::Minimum { limit } => (
            value.to_string(),
            format!("be greater than or equal to {}", number(limit)),
        ),
        _ => return None,
    };
    Some(format!(
        "Invalid value: {value}: {path} in body should {bound}"
    ))
}

impl Violation {
    fn new(path: String, message: String) -> Self {
        Self {
            problem: ManifestProblem {
                path,
                message,
                help: None,
                check: Check::Schema,
            },
            blocks_rules: false,
            is_type: false,
        }
    }

    fn blocking(path: String, message: String) -> Self {
        Self {
            blocks_rules: true,
            ..Self::new(path, message)
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
