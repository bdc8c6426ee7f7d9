//! The files that a command line names, in a stable order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::api::GROUP;
use crate::text::quoted;
use crate::validate::objects;

/// A file or directory that could not be read, and the cause.
#[derive(Debug, serde::Serialize)]
pub struct UnreadableFile {
    pub file: String,
    pub cause: String,
}

/// A source of manifests.
#[derive(Debug, PartialEq, Eq)]
pub enum InputSource {
    File(PathBuf),
    Stdin,
}

impl InputSource {
    /// The name for the report, and the text.
    pub fn read(self) -> Result<(String, String), UnreadableFile> {
        match self {
            InputSource::File(path) => match fs::read_to_string(&path) {
                Ok(text) => Ok((path.display().to_string(), text)),
                Err(cause) => Err(unreadable(&path, &cause)),
            },
            InputSource::Stdin => {
                let mut text = String::new();
                let name = "<stdin>";
                match io::stdin().read_to_string(&mut text) {
                    Ok(_) => Ok((name.to_owned(), text)),
                    Err(cause) => Err(unreadable(Path::new(name), &cause)),
                }
            }
        }
    }
}

/// The sources that a command line names, without the files that are no manifests by themselves.
#[derive(Debug, Default)]
pub struct Sources {
    /// A directory that cannot be listed is an error among them.
    pub found: Vec<Result<InputSource, UnreadableFile>>,
    /// Directories with the templates of a Helm chart, which were left out.
    templates: BTreeSet<PathBuf>,
    /// Patches, which were left out, each with the directory of its kustomization.
    patches: Vec<(PathBuf, PathBuf)>,
}

/// The sources that `paths` name.
pub fn sources(paths: &[PathBuf]) -> Sources {
    let mut sources = Sources::default();
    let mut folders = BTreeSet::new();
    for path in paths {
        if path.as_os_str() == "-" {
            sources.found.push(Ok(InputSource::Stdin));
        } else if let Some(templates) = path.ancestors().find(|folder| is_templates(folder)) {
            sources.templates.insert(templates.to_owned());
        } else if path.is_dir() {
            sources.walk(path, &mut folders);
        } else {
            folders.extend(path.parent().map(Path::to_owned));
            sources.found.push(Ok(InputSource::File(path.clone())));
        }
    }
    sources.leave_out_patches(&folders);
    sources
}

impl Sources {
    /// One line for each sort of files that were left out. It says how `reader`, a command that reads
    /// standard input, reads them.
    pub fn left_out(&self, reader: &str) -> Vec<String> {
        let templates = self.templates.first().map(|folder| {
            format!(
                "{}: templates of a Helm chart are not read{}; instead: \
                 helm template {} | {reader}",
                folder.display(),
                others(self.templates.len()),
                word(folder.parent().unwrap_or(folder))
            )
        });
        let patches = self.patches.first().map(|(folder, patch)| {
            format!(
                "{}: a patch of a kustomization is not read{}; instead: \
                 kubectl kustomize {} | {reader}",
                patch.display(),
                others(self.patches.len()),
                word(folder)
            )
        });
        templates.into_iter().chain(patches).collect()
    }

    /// Adds the manifests in `directory`, and each directory that it reads to `folders`.
    fn walk(&mut self, directory: &Path, folders: &mut BTreeSet<PathBuf>) {
        let listed: io::Result<Vec<_>> = fs::read_dir(directory).and_then(Iterator::collect);
        let mut entries = match listed {
            Ok(entries) => entries,
            Err(cause) => return self.found.push(Err(unreadable(directory, &cause))),
        };
        folders.insert(directory.to_owned());
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            // Links to directories are not followed, because they may form a cycle.
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if is_manifest(&path) && !path.is_dir() {
                    self.found.push(Ok(InputSource::File(path)));
                }
            } else if is_templates(&path) {
                self.templates.insert(path);
            } else {
                self.walk(&path, folders);
            }
        }
    }

    /// A patch has only some fields of an object, so it cannot be judged as one. `folders` are those
    /// whose kustomizations are read.
    fn leave_out_patches(&mut self, folders: &BTreeSet<PathBuf>) {
        let patches: BTreeMap<PathBuf, &PathBuf> = folders
            .iter()
            .flat_map(|folder| patches_of(folder).into_iter().map(move |it| (it, folder)))
            .collect();
        self.found.retain(|found| {
            let Ok(InputSource::File(path)) = found else {
                return true;
            };
            let real = fs::canonicalize(path).unwrap_or_default();
            let Some(folder) = patches.get(&real) else {
                return true;
            };
            self.patches.push(((*folder).clone(), path.clone()));
            false
        });
    }
}

/// The path as a word of a shell. A repository may have any names.
fn word(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        quoted(&path.display().to_string())
    }
}

fn others(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        _ => format!(" ({} more)", count - 1),
    }
}

fn is_templates(directory: &Path) -> bool {
    directory
        .file_name()
        .is_some_and(|name| name == "templates")
        && directory
            .parent()
            .is_some_and(|chart| chart.join("Chart.yaml").is_file())
}

/// True if one of the file's objects would be checked as one of dbplane.
fn is_of_dbplane(file: &Path) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    objects(&text).iter().any(|object| {
        let version = object["apiVersion"].as_str();
        object["kind"].is_string() && version.is_none_or(|it| it.starts_with(&format!("{GROUP}/")))
    })
}

/// The files in which the kustomization of a directory has its patches of dbplane.
fn patches_of(directory: &Path) -> Vec<PathBuf> {
    let names = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
    let texts = names
        .iter()
        .filter_map(|name| fs::read_to_string(directory.join(name)).ok());
    let mut patches = Vec::new();
    for kustomization in texts.flat_map(|text| objects(&text)) {
        for field in ["patches", "patchesJson6902", "patchesStrategicMerge"] {
            let entries = kustomization[field].as_array().into_iter().flatten();
            let files = entries.filter_map(|entry| entry["path"].as_str().or(entry.as_str()));
            // An entry of patchesStrategicMerge may be the patch itself, which is no file.
            let files = files.filter_map(|file| fs::canonicalize(directory.join(file)).ok());
            patches.extend(files.filter(|file| is_of_dbplane(file)));
        }
    }
    patches
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        ["yaml", "yml", "json"]
            .iter()
            .any(|known| extension == *known)
    })
}

fn unreadable(path: &Path, cause: &io::Error) -> UnreadableFile {
    UnreadableFile {
        file: path.display().to_string(),
        cause: cause.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_walked_in_order_and_what_is_named_is_read_whatever_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("b/c.yaml")).unwrap();
        for name in [
            "z.yml",
            "a.json",
            "b/c.yaml/d.yaml",
            "b/readme.md",
            "named.txt",
        ] {
            fs::write(at(name), "").unwrap();
        }
        std::os::unix::fs::symlink(folder.path(), at("b/loop.yaml")).unwrap();

        let found = sources(&[folder.path().to_owned(), "-".into(), at("named.txt")]);

        let expected = [
            InputSource::File(at("a.json")),
            InputSource::File(at("b/c.yaml/d.yaml")),
            InputSource::File(at("z.yml")),
            InputSource::Stdin,
            InputSource::File(at("named.txt")),
        ];
        assert_eq!(
            found
                .found
                .into_iter()
                .map(Result::unwrap)
                .collect::<Vec<_>>(),
            expected
        );
    }

    /// A folder with a chart, and with patches of a kustomization.
    fn chart_and_patches() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [
            ("chart/Chart.yaml", ""),
            ("chart/templates/a.yaml", ""),
            ("chart/templates/more/b.yaml", ""),
            ("chart/values.yaml", ""),
            (
                "prod/kustomization.yaml",
                "patches: [{path: size.yaml}, {path: ../shared/patch.yaml}, {path: other.yaml}]\n\
                 patchesStrategicMerge: [old.yaml, 'a: b']\n",
            ),
            (
                "prod/old.yaml",
                "{apiVersion: dbplane.dev/v1, kind: Compute}",
            ),
            (
                "prod/size.yaml",
                "{apiVersion: dbplane.dev/v1, kind: Compute}",
            ),
            ("prod/other.yaml", "{apiVersion: v1, kind: ConfigMap}"),
            ("shared/patch.yaml", "kind: Compute"),
            ("shared/whole.yaml", ""),
            ("templates/a.yaml", ""),
        ] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn templates_of_charts_and_patches_are_left_out_and_named() {
        let folder = chart_and_patches();
        let at = |name: &str| folder.path().join(name);
        let names = |paths: &[PathBuf]| {
            let sources = sources(paths);
            let left_out = sources.left_out("dbplane plan -f -");
            let name = |found| match found {
                Ok(InputSource::File(path)) => path.strip_prefix(folder.path()).unwrap().to_owned(),
                other => panic!("{other:?}"),
            };
            let names: Vec<PathBuf> = sources.found.into_iter().map(name).collect();
            (names, left_out)
        };

        let (found, left_out) = names(&[folder.path().to_owned()]);

        let expected = [
            "chart/Chart.yaml",
            "chart/values.yaml",
            "prod/kustomization.yaml",
            "prod/other.yaml",
            "shared/whole.yaml",
            "templates/a.yaml",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
        let command =
            |text: &str, folder| format!("{text} '{}' | dbplane plan -f -", at(folder).display());
        assert!(
            left_out[0].contains(&command("helm template", "chart")),
            "{left_out:?}"
        );
        assert!(
            left_out[1].contains(&command("kubectl kustomize", "prod")),
            "{left_out:?}"
        );
        assert!(left_out[1].contains("(2 more)"), "{left_out:?}");

        let named = [
            "chart/templates/more/b.yaml",
            "prod/size.yaml",
            "shared/whole.yaml",
        ];
        let (found, left_out) = names(&named.map(at));
        assert_eq!(
            (found, left_out.len()),
            (vec!["shared/whole.yaml".into()], 2)
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let missing = InputSource::File("no/such/file.yaml".into())
            .read()
            .unwrap_err();
        assert_eq!(missing.file, "no/such/file.yaml");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.yaml"), [0xff, 0xfe, 0x00]).unwrap();
        assert!(
            InputSource::File(folder.path().join("a.yaml"))
                .read()
                .is_err(),
            "it is not UTF-8"
        );
    }
}
