//! A recording of the cluster's objects and the platform as text, with one object per line.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dbplane_simulator::world::{Profile, World};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The recorded kinds in the order of their restoration.
pub const KINDS: [&str; 6] = [
    "Account",
    "ClusterAccount",
    "Compute",
    "ProjectKey",
    "ReadReplicaSet",
    "Secret",
];

/// The cluster and the platform at one moment.
#[derive(Clone, Debug)]
pub struct Recording {
    pub at: Timestamp,
    /// By kind.
    pub objects: BTreeMap<String, Vec<Value>>,
    pub world: World,
}

/// The folder with the recorded objects of a version.
pub fn folder(version: &str, profile: Profile) -> PathBuf {
    let name = json!(profile).as_str().unwrap().to_owned();
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/ecosystem/recorded")
        .join(version)
        .join(name)
}

impl Recording {
    /// Drops managedFields: no decision depends on them, and they are most of the text.
    pub fn new(at: Timestamp, mut objects: BTreeMap<String, Vec<Value>>, world: World) -> Self {
        for object in objects.values_mut().flatten() {
            object["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("managedFields");
            if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
                annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
            }
        }
        Self { at, objects, world }
    }

    pub fn get(&self, kind: &str, name: &str) -> Option<&Value> {
        self.objects
            .get(kind)?
            .iter()
            .find(|object| object["metadata"]["name"] == name)
    }

    pub fn count(&self) -> usize {
        self.objects
            .iter()
            .filter(|(kind, _)| *kind != "Secret")
            .map(|(_, all)| all.len())
            .sum()
    }

    pub fn save(&self, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        for kind in KINDS {
            let objects = self.objects.get(kind).into_iter().flatten();
            let lines: String = objects.map(|object| format!("{object}\n")).collect();
            fs::write(folder.join(format!("{kind}.jsonl")), lines).unwrap();
        }
        // One line per field, and in lists one line per entry.
        let world = json!(self.world);
        let lines = world
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| match value {
                Value::Array(entries) => {
                    let entries: Vec<String> = entries.iter().map(Value::to_string).collect();
                    format!("{}: [\n{}\n]", json!(name), entries.join(",\n"))
                }
                other => format!("{}: {other}", json!(name)),
            });
        let lines = [format!("\"at\": \"{}\"", self.at)]
            .into_iter()
            .chain(lines)
            .collect::<Vec<_>>();
        fs::write(
            folder.join("platform.json"),
            format!("{{\n{}\n}}\n", lines.join(",\n")),
        )
        .unwrap();
    }

    pub fn load(folder: &Path) -> Self {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let of_kind = |kind: &str| {
            let text = read(&format!("{kind}.jsonl"));
            let objects = text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            (kind.to_owned(), objects)
        };
        let mut world: Value = serde_json::from_str(&read("platform.json")).unwrap();
        let at = world.as_object_mut().unwrap().remove("at").unwrap();
        Self {
            at: at.as_str().unwrap().parse().unwrap(),
            objects: KINDS.into_iter().map(of_kind).collect(),
            world: serde_json::from_value(world).unwrap(),
        }
    }
}
