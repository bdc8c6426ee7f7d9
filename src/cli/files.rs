//! The files that a command line names, in a stable order.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

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

/// The sources that `paths` name. A directory that cannot be listed becomes an error among them.
pub fn sources(paths: &[PathBuf]) -> Vec<Result<InputSource, UnreadableFile>> {
    let mut sources = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            sources.push(Ok(InputSource::Stdin));
        } else if path.is_dir() {
            walk(path, &mut sources);
        } else {
            sources.push(Ok(InputSource::File(path.clone())));
        }
    }
    sources
}

fn walk(directory: &Path, sources: &mut Vec<Result<InputSource, UnreadableFile>>) {
    let listed: io::Result<Vec<_>> = fs::read_dir(directory).and_then(Iterator::collect);
    let mut entries = match listed {
        Ok(entries) => entries,
        Err(cause) => return sources.push(Err(unreadable(directory, &cause))),
    };
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        // Links to directories are not followed, because they may form a cycle.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&path, sources);
        } else if is_manifest(&path) && !path.is_dir() {
            sources.push(Ok(InputSource::File(path)));
        }
    }
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
            found.into_iter().map(Result::unwrap).collect::<Vec<_>>(),
            expected
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
