//! Removes the fields of an object that an earlier apply has set.

use serde_json::{Map, Value};

/// Removes the fields from `object` that `applied` (in the form of managed fields) has and
/// `manifest` lacks.
pub fn remove_applied(object: &mut Value, manifest: &Value, applied: &Value) {
    let (Some(fields), Some(applied)) = (object.as_object_mut(), applied.as_object()) else {
        return;
    };
    for (name, below) in applied
        .iter()
        .filter_map(|(name, below)| Some((name.strip_prefix("f:")?, below)))
    {
        let has_fields = below
            .as_object()
            .is_some_and(|below| below.keys().any(|name| name.starts_with("f:")));
        let below = if has_fields { Some(below) } else { None };
        remove_field(fields, name, &manifest[name], below);
    }
}

/// Removes the fields from `object` that `before`, an applied manifest, has and `manifest` lacks.
pub fn remove_declared(object: &mut Value, manifest: &Value, before: &Value) {
    let (Some(fields), Some(before)) = (object.as_object_mut(), before.as_object()) else {
        return;
    };
    for (name, below) in before {
        match (&manifest[name.as_str()], below) {
            (Value::Null, _) => drop(fields.remove(name)),
            (declared, below @ Value::Object(_)) => {
                if let Some(field) = fields.get_mut(name) {
                    remove_declared(field, declared, below);
                }
            }
            _ => {}
        }
    }
}

fn remove_field(
    fields: &mut Map<String, Value>,
    name: &str,
    declared: &Value,
    below: Option<&Value>,
) {
    match (declared, below) {
        // Fields below may belong to other managers too, so only applied ones are removed.
        (Value::Null, Some(below)) => {
            let Some(field) = fields.get_mut(name) else {
                return;
            };
            remove_applied(field, &Value::Null, below);
            if field.as_object().is_some_and(Map::is_empty) {
                fields.remove(name);
            }
        }
        (Value::Null, None) => drop(fields.remove(name)),
        (declared, Some(below)) => {
            if let Some(field) = fields.get_mut(name) {
                remove_applied(field, declared, below);
            }
        }
        (_, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_applied_and_is_not_declared_any_more_goes() {
        let stored = json!({"size": {"fixed": 1}, "pooler": {"enabled": true, "mode": "transaction"}, "other": 1});
        let manifest = json!({"size": {"fixed": 2}});
        let expected = json!({"size": {"fixed": 1}, "other": 1});
        let applied = json!({"f:size": {"f:fixed": {}}, "f:pooler": {".": {}, "f:enabled": {}, "f:mode": {}}});
        let mut object = stored.clone();
        remove_applied(&mut object, &manifest, &applied);
        assert_eq!(object, expected);
        let mut object = stored;
        remove_declared(
            &mut object,
            &manifest,
            &json!({"size": {"fixed": 1}, "pooler": {"enabled": true}}),
        );
        assert_eq!(object, expected);
    }

    #[test]
    fn what_others_have_set_below_stays() {
        let mut object = json!({"pooler": {"enabled": true, "mode": "transaction"}});
        remove_applied(
            &mut object,
            &json!({}),
            &json!({"f:pooler": {"f:enabled": {}}}),
        );
        assert_eq!(object, json!({"pooler": {"mode": "transaction"}}));
    }
}
