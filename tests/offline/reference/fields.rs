//! A page for each kind with all fields of its definition.

use std::fmt::Write;

use dbplane::api::choices;
use serde_json::{Map, Value};

const MADE: &str = "This page is made by `make reference` from the definition that is installed, and a test compares the two.";

/// The file name of a kind's page.
pub fn file(definition: &Value) -> String {
    format!(
        "{}.md",
        definition["spec"]["names"]["singular"].as_str().unwrap()
    )
}

/// The page of a kind. `kinds` are all definitions.
pub fn page(definition: &Value, kinds: &[Value]) -> String {
    let schema = schema(definition);
    let mut page = head(definition, schema);
    let twin = kinds.iter().find(|kind| is_template_of(definition, kind));
    let mut walk = Walk {
        page: &mut page,
        root: schema,
        twin,
    };
    for part in ["spec", "status"] {
        let schema = &schema["properties"][part];
        writeln!(walk.page, "\n## {part}\n\n{}", text(schema)).unwrap();
        walk.rules(schema, "one");
        walk.contents(part, schema);
        walk.fields(part, schema);
    }
    page
}

fn schema(definition: &Value) -> &Value {
    &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// The template of a ReadReplicaSet has the fields of a Compute.
fn is_template_of(definition: &Value, kind: &Value) -> bool {
    let name = |definition: &Value| {
        definition["spec"]["names"]["kind"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    (name(definition).as_str(), name(kind).as_str()) == ("ReadReplicaSet", "Compute")
}

fn head(definition: &Value, schema: &Value) -> String {
    let (spec, version) = (&definition["spec"], &definition["spec"]["versions"][0]);
    let kind = spec["names"]["kind"].as_str().unwrap();
    let scope = match spec["scope"].as_str().unwrap() {
        "Namespaced" => "in a namespace",
        _ => "for the whole cluster",
    };
    let short = code(
        spec["names"]["shortNames"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str),
    );
    let columns = version["additionalPrinterColumns"].as_array().unwrap();
    let shown = |wide: bool| {
        let priority =
            |column: &&Value| (column["priority"].as_i64().unwrap_or_default() > 0) == wide;
        let names: Vec<_> = columns
            .iter()
            .filter(priority)
            .filter_map(|column| column["name"].as_str())
            .collect();
        names.join(", ")
    };
    let (plural, api) = (
        spec["names"]["plural"].as_str().unwrap(),
        format!("dbplane.dev/{}", version["name"].as_str().unwrap()),
    );
    let examples = match kind {
        "Account" | "ClusterAccount" => "account-and-clusteraccount".to_owned(),
        kind => kind.to_lowercase(),
    };
    let mut head = format!(
        "# {kind}: every field\n\n{}\n{MADE} [Examples](../resources.md#{examples}).\n\n\
         - `apiVersion: {api}`, `kind: {kind}`, {scope}; kubectl's short name is {short}.\n\
         - `kubectl get {plural}` shows {}; with `-o wide` also {}.\n",
        text(schema),
        shown(false),
        shown(true),
    );
    if let Some(scale) = version["subresources"].get("scale") {
        let path = |name: &str| {
            scale[name]
                .as_str()
                .unwrap()
                .trim_start_matches('.')
                .to_owned()
        };
        let (wanted, there) = (path("specReplicasPath"), path("statusReplicasPath"));
        writeln!(
            head,
            "- `kubectl scale` and autoscalers set `{wanted}`, and read `{there}`."
        )
        .unwrap();
    }
    head
}

/// Names as inline code, separated by commas.
fn code<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A description, escaped for Markdown.
fn text(schema: &Value) -> String {
    schema["description"]
        .as_str()
        .unwrap_or_default()
        .replace('<', "\\<")
}

struct Walk<'a> {
    page: &'a mut String,
    /// The schema of the resource, whose rules name fields.
    root: &'a Value,
    /// The kind whose spec also occurs in `spec.template.spec`.
    twin: Option<&'a Value>,
}

impl Walk<'_> {
    /// Links to the fields of a level.
    fn contents(&mut self, path: &str, schema: &Value) {
        let links: Vec<_> = properties(schema)
            .map(|(name, _)| format!("[{name}](#{})", anchor(&join(path, name))))
            .collect();
        writeln!(self.page, "\nFields: {}.", links.join(", ")).unwrap();
    }

    fn fields(&mut self, path: &str, schema: &Value) {
        let required: Vec<_> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (name, field) in properties(schema) {
            let path = join(path, name);
            let level = if path.matches('.').count() == 1 {
                "###"
            } else {
                "####"
            };
            let mut facts = facts(field);
            facts.extend(
                required
                    .contains(&name.as_str())
                    .then(|| "required".to_owned()),
            );
            facts.extend(
                field
                    .get("default")
                    .map(|default| format!("default `{}`", plain(default))),
            );
            writeln!(
                self.page,
                "\n{level} {path}\n\n*{}*\n\n{}",
                facts.join(", "),
                text(field)
            )
            .unwrap();
            self.rules(field, "a value");
            self.rules_of_changes(&path);
            self.inner(&path, field);
        }
    }

    /// The fields of an object, of a list's items, or of a map's values.
    fn inner(&mut self, path: &str, field: &Value) {
        if path == "spec.template.spec" && self.as_its_twin(path, field) {
            return;
        }
        self.fields(path, field);
        for (part, suffix, what) in [
            ("items", "[]", "an entry"),
            ("additionalProperties", "{}", "a value"),
        ] {
            if let Some(inner) = field.get(part) {
                self.rules(inner, what);
                self.fields(&format!("{path}{suffix}"), inner);
            }
        }
    }

    /// Fields that the twin has as well are not described again.
    fn as_its_twin(&mut self, path: &str, field: &Value) -> bool {
        let Some(twin) = self.twin else { return false };
        let theirs = &schema(twin)["properties"]["spec"];
        let name = file(twin);
        let (same, own): (Vec<_>, Vec<_>) = properties(field)
            .partition(|(name, field)| theirs["properties"].get(name.as_str()) == Some(field));
        let links: Vec<_> = same
            .iter()
            .map(|(field, _)| format!("[{field}]({name}#{})", anchor(&join("spec", field))))
            .collect();
        let missing = properties(theirs)
            .map(|(name, _)| name.as_str())
            .filter(|name| field["properties"].get(name).is_none());
        let kind = twin["spec"]["names"]["kind"].as_str().unwrap();
        writeln!(
            self.page,
            "\nAs of a {kind}: {}.\n\nA replica lacks these fields of a {kind}: {}.",
            links.join(", "),
            code(missing)
        )
        .unwrap();
        let own = serde_json::json!({
            "properties": own.into_iter().map(|(name, field)| (name.clone(), field.clone())).collect::<Map<_, _>>(),
            "required": field["required"],
        });
        self.fields(path, &own);
        true
    }

    /// The API server's messages for rejected values.
    fn rules(&mut self, schema: &Value, what: &str) {
        self.messages(&format!("{what} that does not fit"), schema, |_| true);
    }

    /// The messages of the rules that compare this field with the stored resource.
    fn rules_of_changes(&mut self, path: &str) {
        let of_field = |rule: &Value| rule["fieldPath"] == format!(".{path}");
        self.messages("some changes", self.root, of_field);
    }

    fn messages(&mut self, what: &str, schema: &Value, of: impl Fn(&Value) -> bool) {
        let rules = schema["x-kubernetes-validations"]
            .as_array()
            .into_iter()
            .flatten();
        let message = |rule: &Value| match rule["message"].as_str() {
            Some(message) => message.replace('<', "\\<").replace('*', "\\*"),
            // The texts of the expression, without the values between them.
            None => {
                let texts = rule["messageExpression"].as_str().unwrap().split('\'');
                texts.skip(1).step_by(2).collect::<Vec<_>>().join("…")
            }
        };
        let messages: Vec<_> = rules.filter(|rule| of(rule)).map(message).collect();
        if !messages.is_empty() {
            writeln!(self.page, "\nThe API server refuses {what}, saying:\n").unwrap();
            messages
                .iter()
                .for_each(|message| writeln!(self.page, "- {message}").unwrap());
        }
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn join(path: &str, name: &str) -> String {
    format!("{path}.{name}")
}

/// The anchor of a field's heading on code hosts and in mdBook.
fn anchor(path: &str) -> String {
    path.to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric())
        .collect()
}

/// A value in the notation of manifests.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The constraints of a value in words.
fn facts(schema: &Value) -> Vec<String> {
    let number = |keyword: &str| schema.get(keyword).map(Value::to_string);
    let mut facts = vec![type_of(schema)];
    if let Some(values) = choices(schema) {
        let texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        if !texts.is_empty() {
            facts.push(format!("one of {}", code(texts.into_iter())));
        }
        return facts;
    }
    let ends = [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " entries"),
    ];
    for (least, most, unit) in
        ends.into_iter()
            .chain([("minProperties", "maxProperties", " entries")])
    {
        match (number(least), number(most)) {
            (Some(least), Some(most)) => facts.push(format!("{least} to {most}{unit}")),
            (Some(least), None) => facts.push(format!("at least {least}{unit}")),
            (None, Some(most)) => facts.push(format!("at most {most}{unit}")),
            (None, None) => {}
        }
    }
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => facts.push("each entry once".to_owned()),
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            facts.push(format!("each {} once", code(keys)));
        }
        _ => {}
    }
    facts
}

fn type_of(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    match (
        schema["type"].as_str().unwrap_or_default(),
        schema["format"].as_str(),
    ) {
        ("string", Some("date-time")) => "time (RFC 3339)".to_owned(),
        ("array", _) => format!("list of {}", several(&schema["items"])),
        ("object", _) if schema.get("additionalProperties").is_some() => {
            format!("map of {}", several(&schema["additionalProperties"]))
        }
        (name, _) => name.to_owned(),
    }
}

fn several(schema: &Value) -> String {
    let mut facts = facts(schema);
    let name = match facts.remove(0).as_str() {
        "time (RFC 3339)" => "times (RFC 3339)".to_owned(),
        name => format!("{name}s"),
    };
    if facts.is_empty() {
        name
    } else {
        format!("{name} ({})", facts.join(", "))
    }
}
