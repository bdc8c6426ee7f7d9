//! Adds advice to problems whose message contains none.

use kube::core::cel;
use serde_json::Value;

use super::{Check, ManifestProblem};

/// The similarity from which a field counts as misspelled.
const ALIKE: f64 = 0.8;
const VARIABLE: &str =
    "replace its variables first, such as: flux envsubst <FILE | dbplane validate -";

/// Advice for `problem`, from the definition of the field at its path.
pub(super) fn help(schema: &Value, object: &Value, problem: &ManifestProblem) -> Option<String> {
    if has_variable(object, &problem.path) {
        return Some(VARIABLE.to_owned());
    }
    match problem.check {
        Check::UnknownField => known_fields(schema, &problem.path),
        Check::Schema => {
            let field = at(schema, &problem.path)?;
            value_at(object, &problem.path)
                .and_then(|value| of_type(field, value))
                .or_else(|| described(field))
        }
        // The messages of rules and of kinds already contain advice.
        Check::Rule | Check::Kind | Check::Yaml | Check::Schedule => problem.help.clone(),
    }
}

/// Flux replaces such texts when it applies a manifest.
fn has_variable(object: &Value, path: &str) -> bool {
    value_at(object, path)
        .and_then(Value::as_str)
        .is_some_and(|text| text.contains("${"))
}

/// Advice for a value of the wrong type: about quotes if they are the whole mistake, or else the
/// message of the field's rule.
fn of_type(field: &Value, value: &Value) -> Option<String> {
    let (advice, meant) = match (field["type"].as_str()?, value) {
        ("string", Value::Number(_) | Value::Bool(_)) => {
            ("write it in quotes", Value::from(value.to_string()))
        }
        (wanted, Value::String(text)) => {
            let meant: Value = serde_json::from_str(text).ok()?;
            let is_meant = match wanted {
                "boolean" => meant.is_boolean(),
                "integer" => meant.is_i64(),
                "number" => meant.is_number(),
                _ => false,
            };
            ("write it without quotes", is_meant.then_some(meant)?)
        }
        _ => return None,
    };
    match cel::Validator::new().validate(field, &meant, None) {
        Ok(()) => Some(advice.to_owned()),
        Err(errors) => errors.into_iter().next().map(|error| error.message),
    }
}

fn known_fields(schema: &Value, path: &str) -> Option<String> {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let fields: Vec<&str> = at(schema, parent)?["properties"]
        .as_object()?
        .keys()
        .map(String::as_str)
        .collect();
    let nearest = fields
        .iter()
        .max_by(|a, b| likeness(a, name).total_cmp(&likeness(b, name)))?;
    if likeness(nearest, name) >= ALIKE {
        return Some(format!("did you mean {nearest}?"));
    }
    let place = if parent.is_empty() {
        "the object"
    } else {
        parent
    };
    Some(format!(
        "remove it; {place} has the fields {}",
        fields.join(", ")
    ))
}

fn likeness(field: &str, name: &str) -> f64 {
    strsim::jaro_winkler(&plain(field), &plain(name))
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace(['_', '-'], "")
}

/// The first paragraph of a field's description.
fn described(field: &Value) -> Option<String> {
    let text = field["description"].as_str()?;
    text.split("\n\n")
        .next()
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The part of the schema at `path`.
fn at<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(schema);
    }
    if let Some((_, rest)) = path
        .strip_prefix('[')
        .and_then(|index| index.split_once(']'))
    {
        return at(schema.get("items")?, rest.trim_start_matches('.'));
    }
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let property = schema
        .get("properties")
        .and_then(|properties| properties.get(&path[..end]));
    match property {
        Some(property) => at(property, path[end..].trim_start_matches('.')),
        // The names of a map may contain dots, and its values are scalars.
        None => schema.get("additionalProperties"),
    }
}

fn value_at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(value);
    }
    if let Some((index, rest)) = path
        .strip_prefix('[')
        .and_then(|index| index.split_once(']'))
    {
        return value_at(
            value.get(index.parse::<usize>().ok()?)?,
            rest.trim_start_matches('.'),
        );
    }
    let end = path.find(['.', '[']).unwrap_or(path.len());
    // The name of a map's entry may contain dots.
    value.get(path).or_else(|| {
        value_at(
            value.get(&path[..end])?,
            path[end..].trim_start_matches('.'),
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn help_for(check: Check, path: &str, object: &Value) -> Option<String> {
        let schema = json!({"properties": {
            "spec": {"properties": {
                "projectID": {"type": "string", "description": "The project.\n\nMore."},
                "names": {"items": {"type": "string", "description": "A name."}},
                "settings": {"additionalProperties": {"type": "string"}},
                "after": {"type": "string", "x-kubernetes-validations": [
                    {"rule": "self.endsWith('m')", "message": "write minutes"},
                ]},
                "size": {"type": "number", "description": "The size.", "x-kubernetes-validations": [
                    {"rule": "double(self) in [1.0, 2.0]", "message": "write a size"},
                ]},
                "on": {"type": "boolean", "description": "A switch."},
            }},
        }});
        let problem = ManifestProblem {
            path: path.to_owned(),
            message: String::new(),
            help: None,
            check,
        };
        help(&schema, object, &problem)
    }

    #[test]
    fn advice_comes_from_the_definition() {
        for (check, path, object, expected) in [
            (
                Check::Schema,
                "spec.projectID",
                json!({}),
                Some("The project."),
            ),
            (
                Check::Schema,
                "spec.projectID",
                json!({"spec": {"projectID": 1}}),
                Some("write it in quotes"),
            ),
            (
                Check::Schema,
                "spec.settings.a.b",
                json!({"spec": {"settings": {"a.b": 1}}}),
                Some("write it in quotes"),
            ),
            (Check::Schema, "spec.names[0]", json!({}), Some("A name.")),
            (
                Check::Schema,
                "spec.names[1]",
                json!({"spec": {"names": ["a", true]}}),
                Some("write it in quotes"),
            ),
            (
                Check::UnknownField,
                "spec.project_id",
                json!({}),
                Some("did you mean projectID?"),
            ),
            (
                Check::UnknownField,
                "spec.x",
                json!({}),
                Some("remove it; spec has the fields after, names, on, projectID, settings, size"),
            ),
            (
                Check::UnknownField,
                "x",
                json!({}),
                Some("remove it; the object has the fields spec"),
            ),
            (Check::Rule, "spec.projectID", json!({}), None),
        ] {
            assert_eq!(
                help_for(check, path, &object).as_deref(),
                expected,
                "{path}"
            );
        }
    }

    #[test]
    fn a_variable_of_flux_is_recognized() {
        for (check, field) in [(Check::Rule, "projectID"), (Check::Schema, "size")] {
            let object = json!({"spec": {field: "${variable}"}});
            let help = help_for(check, &format!("spec.{field}"), &object);
            assert_eq!(help.as_deref(), Some(VARIABLE), "{field}");
        }
    }

    #[test]
    fn a_value_of_the_wrong_type_gets_the_whole_correction() {
        for (field, value, expected) in [
            ("after", json!(5), "write minutes"),
            ("size", json!("2"), "write it without quotes"),
            ("size", json!("3"), "write a size"),
            ("size", json!("large"), "The size."),
            ("size", json!(true), "The size."),
            ("on", json!("true"), "write it without quotes"),
            ("on", json!("2"), "A switch."),
            ("on", json!(1), "A switch."),
        ] {
            let path = format!("spec.{field}");
            let help = help_for(Check::Schema, &path, &json!({"spec": {field: value}}));
            assert_eq!(help.as_deref(), Some(expected), "{path}: {value}");
        }
    }
}
