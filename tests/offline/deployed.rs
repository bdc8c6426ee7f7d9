//! deploy/ must match the program: its build, and its flags.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::{Value, json};

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// Flags for tests, and flags whose value the program finds out by itself in a Pod.
/// `operator.extraArgs` can set them.
const WITHOUT_VALUE: [&str; 2] = ["allow-insecure-platform", "identity"];

fn read(path: impl AsRef<Path>) -> String {
    let path = Path::new(REPOSITORY).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// No test builds this image, because that needs a container engine.
#[test]
fn the_recipe_of_the_image_copies_every_file_that_the_program_includes() {
    let recipe = read("deploy/Containerfile");
    let copied: Vec<&str> = recipe
        .lines()
        .filter_map(|line| {
            line.strip_prefix("COPY ")
                .filter(|line| !line.starts_with("--"))
        })
        .flat_map(str::split_whitespace)
        .collect();
    let includes = Regex::new(r#"include_(?:str|bytes)!\("([^"]+)"\)"#).unwrap();
    let top = Path::new(REPOSITORY).canonicalize().unwrap();
    let (mut files, mut outside) = (Vec::new(), 0);
    sources(&top.join("src"), &mut files);
    for file in files {
        for found in includes.captures_iter(&fs::read_to_string(&file).unwrap()) {
            let included = file
                .parent()
                .unwrap()
                .join(&found[1])
                .canonicalize()
                .unwrap();
            let included = included.strip_prefix(&top).unwrap();
            outside += usize::from(!included.starts_with("src"));
            let is_copied = copied.iter().any(|copied| included.starts_with(copied));
            assert!(
                is_copied,
                "deploy/Containerfile copies no {}, which {} includes",
                included.display(),
                file.display()
            );
        }
    }
    assert!(
        outside > 0,
        "nothing outside of src is included: this test is not needed any more"
    );
}

#[test]
fn every_flag_of_the_operator_is_a_value_of_the_chart() {
    let template = read("deploy/chart/templates/deployment.yaml");
    let help = std::process::Command::new(env!("CARGO_BIN_EXE_dbplane"))
        .args(["run", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let flag = Regex::new(r"(?m)^ +(?:-., )?--([a-z-]+)").unwrap();
    let flags: Vec<&str> = flag
        .captures_iter(&help)
        .map(|found| found.get(1).unwrap().as_str())
        .collect();
    assert!(flags.len() > 15, "{flags:?}");
    for flag in flags {
        let set = template.contains(&format!("- --{flag}"))
            || template.contains(&format!("\"{flag}\" ."));
        let excused = flag == "help" || WITHOUT_VALUE.contains(&flag);
        assert!(
            set != excused,
            "--{flag}: {}",
            if set {
                "the chart sets it"
            } else {
                "the chart has no value for it"
            }
        );
    }
}

/// True if an address block in the notation of policies contains this address.
fn has(block: &str, address: IpAddr) -> bool {
    let (start, length) = block.split_once('/').unwrap();
    let (bits, length) = (
        |address| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        },
        length.parse::<u32>().unwrap(),
    );
    let start: IpAddr = start.parse().unwrap();
    start.is_ipv4() == address.is_ipv4()
        && (bits(start) ^ bits(address))
            .checked_shr(128 - length)
            .unwrap_or_default()
            == 0
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Checks the address blocks, exceptions and ports of the rules.
fn admitted(policy: &Value, port: u64, address: &str) -> bool {
    let address: IpAddr = address.parse().unwrap();
    let rules = policy["spec"]["egress"].as_array().unwrap().iter();
    let rules = rules.filter(|rule| {
        rule["ports"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["port"] == port)
    });
    let mut blocks = rules
        .flat_map(|rule| rule["to"].as_array().unwrap())
        .map(|peer| &peer["ipBlock"]);
    blocks.any(|it| {
        has(it["cidr"].as_str().unwrap(), address)
            && !texts(&it["except"]).any(|block| has(block, address))
    })
}

/// The policy must match the program's rules, as far as a policy can express them.
#[test]
fn the_network_policy_admits_public_addresses_and_the_api_server() {
    let policy: Value = serde_saphyr::from_str(&read("deploy/base/network-policy.yaml")).unwrap();
    for private in [
        "0.0.0.0",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.168.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2001::1",
        "2002:a00:1::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "ff02::1",
    ] {
        assert!(!admitted(&policy, 443, private), "{private}");
    }
    for public in [
        "1.1.1.1",
        "11.0.0.1",
        "100.128.0.1",
        "168.63.129.17",
        "172.32.0.1",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00::1",
    ] {
        assert!(admitted(&policy, 443, public), "{public}");
    }
    for api_server in ["10.0.0.1", "192.168.49.2", "203.0.113.7", "fd00::1"] {
        assert!(
            admitted(&policy, 6443, api_server) && !admitted(&policy, 80, api_server),
            "{api_server}"
        );
    }
    // Only chosen clients may connect, and only for metrics.
    let ingress = &policy["spec"]["ingress"];
    let chosen = json!([{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}]);
    assert_eq!(
        ingress,
        &json!([{"ports": [{"port": "metrics", "protocol": "TCP"}], "from": chosen}])
    );
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
}

/// Compares without helm; another test renders the whole chart.
#[test]
fn the_values_of_the_chart_have_the_blocks_of_the_policy() {
    let policy: Value = serde_saphyr::from_str(&read("deploy/base/network-policy.yaml")).unwrap();
    let values: Value = serde_saphyr::from_str(&read("deploy/chart/values.yaml")).unwrap();
    let values = &values["networkPolicy"];
    assert_eq!(values["enabled"], true);
    assert_eq!(values["metricsFrom"], policy["spec"]["ingress"][0]["from"]);
    let lists = ["apiServer", "platforms"].map(|list| values[list].as_array().unwrap().iter());
    let of_values: Vec<_> = lists
        .into_iter()
        .flatten()
        .map(|it| (&it["port"], &it["cidr"], &it["except"]))
        .collect();
    let rules = policy["spec"]["egress"].as_array().unwrap()[1..].iter();
    let block =
        |rule: &'static str, value: &Value| value.pointer(rule).cloned().unwrap_or_default();
    let of_policy: Vec<_> = rules
        .map(|rule| {
            [
                "/ports/0/port",
                "/to/0/ipBlock/cidr",
                "/to/0/ipBlock/except",
            ]
            .map(|place| block(place, rule))
        })
        .collect();
    let of_policy: Vec<_> = of_policy
        .iter()
        .map(|[port, cidr, except]| (port, cidr, except))
        .collect();
    assert_eq!(of_values, of_policy);
}

/// The fields below `path` that name an object, according to their rules.
fn names_of_objects(schema: &Value, path: &str, found: &mut Vec<String>) {
    let rules = schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten();
    if rules
        .filter_map(|rule| rule["message"].as_str())
        .any(|message| message.contains("write an object's name"))
    {
        found.push(path.to_owned());
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        names_of_objects(field, &format!("{path}/{name}"), found);
    }
    if schema["items"].is_object() {
        names_of_objects(&schema["items"], path, found);
    }
}

/// Without a line for it, kustomize does not rename a reference.
#[test]
fn kustomize_knows_every_field_that_names_an_object() {
    let configuration: Value =
        serde_saphyr::from_str(&read("deploy/kustomize/names/name-reference.yaml")).unwrap();
    let targets = configuration["nameReference"].as_array().unwrap();
    let fields = targets
        .iter()
        .flat_map(|target| target["fieldSpecs"].as_array().unwrap());
    let ours: Vec<(&str, &str)> = fields
        .filter(|field| field["group"] == "dbplane.dev")
        .map(|field| {
            (
                field["kind"].as_str().unwrap(),
                field["path"].as_str().unwrap(),
            )
        })
        .collect();
    let mut count = 0;
    for definition in dbplane::controller::definitions() {
        let kind = definition.spec.names.kind.as_str();
        let schema = serde_json::to_value(&definition.spec.versions[0].schema).unwrap();
        let mut found = Vec::new();
        names_of_objects(
            &schema["openAPIV3Schema"]["properties"]["spec"],
            "spec",
            &mut found,
        );
        for path in found {
            count += 1;
            // A reference with a namespace counts as one field.
            let known = ours.iter().any(|(of, field)| {
                *of == kind && (*field == path || path == format!("{field}/name"))
            });
            assert!(
                known,
                "deploy/kustomize/names/name-reference.yaml lacks {path} of {kind}"
            );
        }
    }
    assert!(count >= 10, "only {count} such fields were found");
}

#[test]
fn users_may_read_one_lease_where_that_is_switched_on() {
    let role = read("deploy/chart/roles/leader-reader/role.yaml");
    let role: Value = serde_saphyr::from_str(&role).unwrap();
    let rule = json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["dbplane"], "verbs": ["get"]}]);
    assert_eq!((&role["kind"], &role["rules"]), (&json!("Role"), &rule));
    let values: Value = serde_saphyr::from_str(&read("deploy/chart/values.yaml")).unwrap();
    assert_eq!(values["leaderReader"]["enabled"], false);
    let binding: Value =
        serde_saphyr::from_str(&read("deploy/leader-reader/binding.yaml")).unwrap();
    assert_eq!(values["leaderReader"]["subjects"], binding["subjects"]);
    // An overlay without a namespace of its own leaves them there.
    for object in [&role, &binding] {
        assert_eq!(object["metadata"]["namespace"], "dbplane-system");
    }
}

/// Helm reports each link on stderr, and kustomize follows none out of its folder: both read the
/// files of the chart.
#[test]
fn the_chart_has_no_links() {
    let mut folders = vec![Path::new(REPOSITORY).join("deploy/chart")];
    let mut links = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_symlink() {
                links.push(path);
            } else if path.is_dir() {
                folders.push(path);
            }
        }
    }
    assert!(links.is_empty(), "{links:#?}");
}
