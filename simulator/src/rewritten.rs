//! Rewrites correct answers into equivalent forms that another platform might use.

use jiff::Timestamp;
use serde_json::Value;

/// Units of Postgres settings, with the base unit and the factor.
const UNITS: [(&str, &str, u64); 9] = [
    ("TB", "kB", 1 << 30),
    ("GB", "kB", 1 << 20),
    ("MB", "kB", 1 << 10),
    ("kB", "kB", 1),
    ("min", "ms", 60_000),
    ("ms", "ms", 1),
    ("s", "ms", 1_000),
    ("h", "ms", 3_600_000),
    ("d", "ms", 86_400_000),
];

/// Removes the zone from every time.
pub fn without_zones(body: &mut Value) {
    match body {
        Value::Array(items) => items.iter_mut().for_each(without_zones),
        Value::Object(fields) => fields.values_mut().for_each(without_zones),
        Value::String(text) if text.parse::<Timestamp>().is_ok() => {
            let plain = text.trim_end_matches('Z').len();
            text.truncate(plain);
        }
        _ => {}
    }
}

/// Writes Postgres settings in base units, and booleans as `on` and `off`.
pub fn with_normalized_settings(body: &mut Value) {
    match body {
        Value::Array(items) => items.iter_mut().for_each(with_normalized_settings),
        Value::Object(fields) => {
            if let Some(Value::Object(settings)) = fields.get_mut("pg_settings") {
                settings.values_mut().for_each(normalize);
            }
            fields.values_mut().for_each(with_normalized_settings);
        }
        _ => {}
    }
}

fn normalize(value: &mut Value) {
    let normalized = value
        .as_str()
        .and_then(|text| match text.to_ascii_lowercase().as_str() {
            "true" | "yes" => Some("on".to_owned()),
            "false" | "no" => Some("off".to_owned()),
            _ => in_base_unit(text),
        });
    if let Some(normalized) = normalized {
        *value = normalized.into();
    }
}

fn in_base_unit(text: &str) -> Option<String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let (_, base, many) = UNITS.iter().find(|(name, ..)| *name == unit.trim())?;
    let count = number.parse::<u64>().ok()?.checked_mul(*many)?;
    Some(format!("{count}{base}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_lose_their_zone_and_other_texts_stay() {
        let mut body =
            json!({"endpoints": [{"id": "ep-Z", "created_at": "2026-01-05T08:00:00Z", "size": 1}]});
        without_zones(&mut body);
        assert_eq!(
            body,
            json!({"endpoints": [{"id": "ep-Z", "created_at": "2026-01-05T08:00:00", "size": 1}]})
        );
    }

    #[test]
    fn settings_as_postgres_keeps_them() {
        for (value, normalized) in [
            ("64MB", "65536kB"),
            ("1GB", "1048576kB"),
            ("8 kB", "8kB"),
            ("5min", "300000ms"),
            ("30s", "30000ms"),
            ("true", "on"),
            ("No", "off"),
            ("100", "100"),
            ("1.5GB", "1.5GB"),
            ("99999999999999999TB", "99999999999999999TB"),
            ("", ""),
            ("UTC", "UTC"),
        ] {
            let mut body =
                json!({"endpoint": {"name": "64MB", "settings": {"pg_settings": {"a": value}}}});
            with_normalized_settings(&mut body);
            let expected = json!({"endpoint": {"name": "64MB", "settings": {"pg_settings": {"a": normalized}}}});
            assert_eq!(body, expected);
        }
    }
}
