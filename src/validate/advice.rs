//! Adds advice to problems whose message contains none.

use serde_json::Value;

use super::{Check, ManifestProblem};

/// The similarity from which a field counts as misspelled.
const ALIKE: f64 = 0.8;

/// Advice for `problem`, from the definition of the field at its path.
pub(super) fn help(schema: &Value, object: &Value, problem: &ManifestProblem) -> Option<String> {
    match problem.check {
        Check::UnknownField => known_fields(schema, &problem.path),
        Check::Schema => {
            let field = at(schema, &problem.path)?;
            let is_text = field["type"] == "string";
            let is_scalar = value_at(object, &problem.path)
                .is_some_and(|value| value.is_number() || value.is_boolean());
            if is_text && is_scalar {
                Some("write it in quotes".to_owned())
            } else {
                described(field)
            }
        }
        // The messages of rules and of kinds already contain advice.
        Check::Rule | Check::Kind | Check::Yaml | Check::Schedule => problem.help.clone(),
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
                Some("remove it; spec has the fields names, projectID, settings"),
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
}
