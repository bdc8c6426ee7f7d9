//! The validation rules that several fields share. Every message says what to change.

mod times;

use kube::core::{Message, Rule};
use serde_json::Value;

pub(super) use self::times::{cron, cron_ranges, time_zone};

/// The pattern of identifiers in the platform's public API description.
const IDENTIFIER: &str = "^[a-z0-9-]{1,60}$";
const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const DNS_SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const SECRET_DATA_KEY: &str = "^[-._a-zA-Z0-9]+$";
/// The name part of a label or annotation key, with an optional prefix before a slash.
const QUALIFIED_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
const LABEL_VALUE: &str = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";
/// The number of digits is bounded because CEL's `duration` fails beyond 292 years.
const DURATION: &str = "^([0-9]{1,5}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?$";

fn rule(expression: String, message: &str) -> Rule {
    Rule::new(expression).message(message)
}

/// Writes the pattern as a CEL raw string, because it contains backslashes.
fn matches(subject: &str, pattern: &str) -> String {
    format!("{subject}.matches(r'{pattern}')")
}

/// `self` is one of the platform's identifiers.
pub(super) fn identifier() -> Rule {
    rule(
        matches("self", IDENTIFIER),
        "write the platform's identifier as the platform shows it: 1 to 60 of a-z, 0-9 and -",
    )
}

/// Every item of `self` is one of the platform's identifiers.
pub(super) fn identifiers() -> Rule {
    rule(
        format!("self.all(id, {})", matches("id", IDENTIFIER)),
        "write the platform's identifiers as the platform shows them: 1 to 60 of a-z, 0-9 and -",
    )
}

/// `self` identifies a compute.
pub(super) fn compute_id() -> Rule {
    rule(
        matches("self", "^ep-[a-z0-9-]{1,57}$"),
        "write the identifier of a compute as the platform shows it: ep- and then a-z, 0-9 and -",
    )
}

/// `self` cannot be changed. `instead` is the advice in the message.
pub(super) fn immutable(instead: &str) -> Rule {
    rule(
        "self == oldSelf".to_owned(),
        &format!("cannot be changed: {instead}"),
    )
}

/// The field of the spec cannot be changed while `held` is true of the stored object. A rule of the
/// whole resource also judges writes of the status, so it looks at changes of the spec only.
pub(super) fn fixed_while(held: &str, field: &str, instead: &str) -> Rule {
    let [new, old] = ["self", "oldSelf"].map(|object| format!("{object}.spec.{field}"));
    let same = format!("has({new}) == has({old}) && (!has({new}) || {new} == {old})");
    rule(
        format!("!({held}) || {same}"),
        &format!("cannot be changed any more: {instead}"),
    )
    .field_path(format!(".spec.{field}"))
}

/// True of a stored object whose record has one of these parts: something exists on the platform
/// for it, or may exist. The record is compact JSON in the status, in which a quoted name before a
/// colon is always the name of a part.
pub(super) fn recorded(parts: &[&str]) -> String {
    let parts: Vec<_> = parts.iter().map(|part| format!("'\"{part}\":'")).collect();
    format!(
        "has(oldSelf.status) && has(oldSelf.status.record) \
         && [{}].exists(part, oldSelf.status.record.contains(part))",
        parts.join(", ")
    )
}

/// True of a stored account through which resources have, or may have, something on the platform.
pub(super) const ACCOUNT_IN_USE: &str =
    "has(oldSelf.status) && has(oldSelf.status.inUse) && oldSelf.status.inUse";

/// A Compute that has a compute names no other one. Removing computeID is always possible.
pub(super) fn own_compute() -> Rule {
    let (new, old) = ("self.spec.computeID", "oldSelf.spec.computeID");
    let has = "oldSelf.status.computeID";
    let message = format!(
        "'this Compute has compute ' + {has} + ': remove computeID, or set it to ' + {has} \
         + '; for ' + {new} + ', create another Compute'"
    );
    Rule::new(format!(
        "!has({new}) || has({old}) && {new} == {old} \
         || !has(oldSelf.status) || !has({has}) || {new} == {has}"
    ))
    .message(Message::Expression(message))
    .field_path(".spec.computeID")
}

/// `self` names a Secret, an Account or another object whose name is a DNS subdomain.
pub(super) fn object_name() -> Rule {
    rule(
        matches("self", DNS_SUBDOMAIN),
        "write an object's name: a-z, 0-9, - and ., beginning and ending with a letter or digit",
    )
}

/// `self` names a namespace.
pub(super) fn namespace_name() -> Rule {
    rule(
        matches("self", DNS_LABEL),
        "write the name of a namespace: a-z, 0-9 and -, beginning and ending with a letter or digit",
    )
}

/// `self` names an entry of a list.
pub(super) fn entry_name() -> Rule {
    rule(
        matches("self", DNS_LABEL),
        "write a name: a-z, 0-9 and -, beginning and ending with a letter or digit",
    )
}

/// Every item of `self` names a namespace.
pub(super) fn namespace_names() -> Rule {
    rule(
        format!("self.all(name, {})", matches("name", DNS_LABEL)),
        "write names of namespaces; to admit every namespace use an empty selector instead: selector: {}",
    )
}

/// The expressions of the label selector `self` have values exactly if their operator takes values.
pub(super) fn selector_expressions() -> Rule {
    rule(
        "!has(self.matchExpressions) || self.matchExpressions.all(e, \
         has(e.values) && e.values.size() > 0 ? !(e.operator in ['Exists', 'DoesNotExist']) \
         : !(e.operator in ['In', 'NotIn']))"
            .to_owned(),
        "matchExpressions: give In and NotIn at least one of values, and Exists and DoesNotExist none",
    )
}

/// The keys and values of the label selector `self` are valid for labels.
pub(super) fn selector_labels() -> Rule {
    let (key, value) = (
        matches("key", QUALIFIED_NAME),
        matches("self.matchLabels[key]", LABEL_VALUE),
    );
    let labels = format!("!has(self.matchLabels) || self.matchLabels.all(key, {key} && {value})");
    let (key, value) = (
        matches("e.key", QUALIFIED_NAME),
        matches("value", LABEL_VALUE),
    );
    let each = format!("{key} && (!has(e.values) || e.values.all(value, {value}))");
    let expressions =
        format!("!has(self.matchExpressions) || self.matchExpressions.all(e, {each})");
    rule(
        format!("({labels}) && ({expressions})"),
        "write labels as Kubernetes does: keys as name or prefix/name, values of up to 63 letters, digits, -, _ and .",
    )
}

/// `self` is one of these texts.
pub(super) fn one_of(texts: &[&str]) -> Rule {
    let words = match texts {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => texts.concat(),
    };
    rule(format!("self in {texts:?}"), &format!("write {words}"))
}

/// The values that the schema admits, if it lists them in an `enum` or in a rule. Whole numbers,
/// which have two notations, are integers.
pub fn choices(schema: &Value) -> Option<Vec<Value>> {
    let rules = schema["x-kubernetes-validations"].as_array();
    let mut listed = rules.into_iter().flatten().filter_map(|rule| {
        let rule = rule["rule"].as_str()?;
        let of_texts = rule.strip_prefix("self in ");
        serde_json::from_str(of_texts.or(rule.strip_prefix("double(self) in "))?).ok()
    });
    let values: Vec<Value> = match schema["enum"].as_array() {
        Some(values) => values.clone(),
        None => listed.next()?,
    };
    let plain = |value: Value| match value.as_f64() {
        Some(number) if number.fract() == 0. => Value::from(number as i64),
        _ => value,
    };
    Some(values.into_iter().map(plain).collect())
}

/// `self` is a key of a Secret's data.
pub(super) fn secret_data_key() -> Rule {
    rule(
        matches("self", SECRET_DATA_KEY),
        "write a key of a Secret's data: letters, digits, -, _ and .",
    )
}

/// `self` is a Secret type that Kubernetes does not define itself.
pub(super) fn secret_type() -> Rule {
    let own = "!self.matches('^([a-z0-9.-]+[.])?kubernetes[.]io/')";
    rule(
        format!(
            "{own} && {}",
            matches("self", "^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$")
        ),
        "write Opaque or a type of your own, such as example.com/api-key: letters, digits, -, _, . and /, and none of kubernetes.io",
    )
}

/// The keys of `self` are keys of a Secret's data.
pub(super) fn secret_data_keys() -> Rule {
    rule(
        format!(
            "self.all(key, key.size() <= 253 && {})",
            matches("key", SECRET_DATA_KEY)
        ),
        "name the entries as keys of a Secret's data: up to 253 letters, digits, -, _ and .",
    )
}

/// The keys of `self` are valid keys of labels or annotations.
pub(super) fn metadata_keys() -> Rule {
    rule(
        format!(
            "self.all(key, key.size() <= 317 && {})",
            matches("key", QUALIFIED_NAME)
        ),
        "write keys as name or prefix/name: the name up to 63 letters, digits, -, _ and ., the prefix a DNS name",
    )
}

/// The keys of `self` do not have dbplane's own prefix.
pub(super) fn unreserved_keys() -> Rule {
    rule(
        "self.all(key, !key.startsWith('dbplane.dev/'))".to_owned(),
        "remove the keys under dbplane.dev/: they are reserved for dbplane itself",
    )
}

/// The values of `self` are valid values of labels.
pub(super) fn label_values() -> Rule {
    rule(
        format!("self.all(key, {})", matches("self[key]", LABEL_VALUE)),
        "write values as Kubernetes labels: empty, or up to 63 letters, digits, -, _ and ., beginning and ending with a letter or digit",
    )
}

/// `self` is a duration from `least` to `most`.
pub(super) fn duration(least: &str, most: &str) -> Rule {
    let length =
        format!("duration(self) >= duration('{least}') && duration(self) <= duration('{most}')");
    rule(
        format!("self != '' && {} && {length}", matches("self", DURATION)),
        &format!(
            "write a length of time from {least} to {most}, in hours, minutes and seconds: h, m and s in this order"
        ),
    )
}

/// The duration `shorter` of `self` is shorter than `longer`, if both are set. Malformed values are
/// left to their own rule.
pub(super) fn shorter_than(shorter: &str, longer: &str) -> Rule {
    rule(
        format!(
            "{} || {} || duration(self.{shorter}) < duration(self.{longer})",
            malformed(shorter),
            malformed(longer)
        ),
        &format!("make {shorter} shorter than {longer}"),
    )
    .field_path(format!(".{shorter}"))
}

fn malformed(field: &str) -> String {
    let subject = format!("self.{field}");
    format!(
        "!has({subject}) || {subject} == '' || !{}",
        matches(&subject, DURATION)
    )
}

/// `self` is an absolute URL. Forbidden parts and the required end have their own rules with their
/// own messages.
pub(super) fn base_url() -> Rule {
    let host = r"([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?";
    rule(
        matches(
            "self",
            &format!("^https?://([^/?#@]*@)?{host}([/?#][!-~]*)?$"),
        ),
        "write an absolute URL: https://, a host name and a path, such as https://platform.example/api/v2",
    )
}

/// The URL `self` has only a scheme, a host and a path.
pub(super) fn base_url_alone() -> Rule {
    rule(
        "!self.contains('@') && !self.contains('?') && !self.contains('#')".to_owned(),
        "remove user name, password, query and fragment; credentials belong in the Secret of apiKeySecretRef",
    )
}

/// The path of the URL `self` ends with a version.
pub(super) fn base_url_version() -> Rule {
    rule(
        matches("self.split('?')[0].split('#')[0]", "/v[0-9]+/?$"),
        "end the URL with the API's version segment, such as https://platform.example/api/v2",
    )
}

/// `self` is a readable name. It may have 32 of the platform's 64 characters.
pub(super) fn key_name() -> Rule {
    rule(
        matches(
            "self",
            "^[A-Za-z0-9]([-A-Za-z0-9 ._:/@+()]*[-A-Za-z0-9._@+()])?$",
        ),
        "write 1 to 32 letters, digits, spaces and . _ - : / @ + ( ), beginning with a letter or digit and ending with none of space : /",
    )
}

/// The values of `self` use only these placeholders.
pub(super) fn placeholders(names: &[&str]) -> Rule {
    let known = format!(r"\{{\{{ *({}) *\}}\}}", names.join("|"));
    let texts: Vec<String> = names
        .iter()
        .map(|name| format!("{{{{ {name} }}}}"))
        .collect();
    let (last, others) = texts
        .split_last()
        .map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
    rule(
        format!(
            "self.all(name, {})",
            matches("self[name]", &format!(r"^([^{{]|{known}|\{{[^{{])*\{{?$"))
        ),
        &format!("write {{{{ only to begin {} or {last}", others.join(", ")),
    )
}

/// The template of `self` uses these placeholders (alternatives of a pattern) only if `field` is
/// set.
pub(super) fn placeholders_need(field: &str, is_set: &str, names: &str) -> Rule {
    let uses = matches(
        "self.template[name]",
        &format!(r"\{{\{{ *({names}) *\}}\}}"),
    );
    rule(
        format!("{is_set} || !has(self.template) || self.template.all(name, !{uses})"),
        &format!(
            "a placeholder has no value without {field}: add {field}, or do not use {}",
            names.replace('|', ", ")
        ),
    )
    .field_path(".template")
}

/// `self` names a database.
pub(super) fn database_name() -> Rule {
    rule(
        matches("self", r"^[^\x00-\x1F\x7F]+$"),
        "write the name of a database: 1 to 63 characters, without line breaks and other control characters",
    )
}

/// The keys of `self` are valid names of database settings.
pub(super) fn setting_names() -> Rule {
    let name = matches(
        "name",
        r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$",
    );
    rule(
        format!("self.all(name, name.size() <= 127 && {name})"),
        "name settings as Postgres does: letters, digits and _, such as work_mem, with . between an extension and its setting",
    )
}

/// The values of `self` are valid values of database settings.
pub(super) fn setting_values() -> Rule {
    rule(
        format!(
            "self.all(name, {})",
            matches("self[name]", r"^[^\x00-\x1F\x7F]+$")
        ),
        "give every setting a value on one line; to leave a setting to the platform, remove its name",
    )
}

/// No two entries of `self` have the same name.
pub(super) fn distinct_names() -> Rule {
    rule(
        "self.all(entry, self.exists_one(other, other.name == entry.name))".to_owned(),
        "give every entry a name of its own",
    )
}

/// The spec also declares each field that its schedules set, so that a value applies at other
/// times. It does not ignore that field.
pub(super) fn scheduled(field: &str) -> Rule {
    rule(
        format!(
            "!has(self.schedules) || !self.schedules.exists(entry, has(entry.{field})) \
             || has(self.{field}) && !(has(self.ignore) && '{field}' in self.ignore)"
        ),
        &format!(
            "schedules set {field}: declare {field} for all other times as well, and do not ignore it"
        ),
    )
}

/// `self` is a number of at least `least` (0 or 1) or a percentage.
pub(super) fn share(least: u8) -> Rule {
    let numbers = if least == 0 {
        "[1-9]?[0-9]|100"
    } else {
        "[1-9][0-9]?|100"
    };
    rule(
        matches("string(self)", &format!("^({numbers}|([1-9]?[0-9]|100)%)$")),
        &format!("write a number from {least} to 100, or a percentage from 0% to 100%"),
    )
}

/// `self` has exactly one of two fields.
pub(super) fn exactly_one_of(one: &str, other: &str) -> Rule {
    rule(
        format!("has(self.{one}) != has(self.{other})"),
        &format!("set exactly one of {one} and {other}"),
    )
}

/// A rule of one kind only, written beside its field.
pub(super) fn demand(expression: &str, message: &str) -> Rule {
    rule(expression.to_owned(), message)
}
