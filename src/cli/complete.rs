//! Completes a command line for a shell, or for kubectl. The names of resources and namespaces come
//! from the cluster that the command line names, and those of contexts from its kubeconfig.

use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::io::{self, Write};
use std::time::Duration;

use clap::{ArgMatches, Command, FromArgMatches};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, complete};
use clap_complete::env::CompleteEnv;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::ListParams;
use serde::de::DeserializeOwned;

use super::common::{ClusterArgs, Connected, ScopeArgs};
use super::resource::ResourceKind;
use super::{called, command};

/// The variable by which the script of a shell asks for completions.
pub const VARIABLE: &str = "DBPLANE_COMPLETE";
/// A person waits for each completion.
const LONGEST: Duration = Duration::from_secs(3);
/// The argument of verbs that names resources.
const TARGETS: &str = "targets";

/// Directives of cobra, by which kubectl completes: no files, and no space behind the only one.
const NO_FILES: u8 = 4;
const NO_SPACE: u8 = 2;

/// Answers if a shell or kubectl asks for completions instead of running a command.
///
/// # Errors
/// If the shell is unknown, or the answer cannot be written.
pub fn answer() -> io::Result<bool> {
    let words: Vec<OsString> = std::env::args_os().collect();
    if called::completes_for_kubectl() {
        for_kubectl(words, &mut io::stdout())?;
        return Ok(true);
    }
    // A script calls: dbplane -- dbplane WORD …
    let line: Vec<OsString> = words.iter().skip(2).cloned().collect();
    CompleteEnv::with_factory(|| completing(&line))
        .var(VARIABLE)
        .try_complete(words, None)
        .map_err(io::Error::other)
}

/// The last word is the one to complete.
fn for_kubectl(words: Vec<OsString>, out: &mut impl Write) -> io::Result<()> {
    let last = words.len() - 1;
    let wants_flags = words[last].to_string_lossy().starts_with('-');
    let mut command = completing(&words);
    let candidates = complete(&mut command, words, last, None)?;
    let mut directive = NO_FILES;
    for candidate in candidates.iter().filter(|one| !one.is_hide_set()) {
        let value = candidate.get_value().to_string_lossy();
        // kubectl offers flags only after a dash.
        if value.starts_with('-') && !wants_flags {
            continue;
        }
        if value.ends_with(['/', '=']) {
            directive |= NO_SPACE;
        }
        let help = candidate.get_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        let help = help.lines().next().unwrap_or_default();
        writeln!(out, "{value}\t{help}")?;
    }
    writeln!(out, ":{directive}")
}

/// Finds the candidates for the last word. `None` if they cannot be read.
type Complete = fn(&ArgMatches, &str) -> Option<Vec<CompletionCandidate>>;

/// The arguments whose values come from a cluster or its kubeconfig.
const COMPLETED: [(&str, Complete); 3] = [
    (TARGETS, resources),
    ("namespace", namespaces),
    ("context", contexts),
];

/// The command line, whose arguments are completed from the cluster of `words`.
fn completing(words: &[OsString]) -> Command {
    command().mut_subcommands(|verb| {
        let has = |verb: &Command, name: &str| verb.get_arguments().any(|arg| arg.get_id() == name);
        if !has(&verb, "kubeconfig") {
            return verb;
        }
        let mut verb = verb;
        for (argument, candidates) in COMPLETED {
            if has(&verb, argument) {
                let words = words.to_vec();
                let completer = ArgValueCompleter::new(move |current: &OsStr| {
                    of_words(&words, current, candidates).unwrap_or_default()
                });
                verb = verb.mut_arg(argument, |arg| arg.add(completer));
            }
        }
        verb
    })
}

fn of_words(
    words: &[OsString],
    current: &OsStr,
    candidates: Complete,
) -> Option<Vec<CompletionCandidate>> {
    let matches = command().ignore_errors(true).try_get_matches_from(words);
    let matches = matches.ok()?;
    let (_, verb) = matches.subcommand()?;
    candidates(verb, current.to_str()?)
}

fn resources(verb: &ArgMatches, current: &str) -> Option<Vec<CompletionCandidate>> {
    let (prefix, kind) = match (kind_before(verb, current), current.split_once('/')) {
        (Some(kind), _) => (String::new(), kind),
        (None, Some((kind, _))) => (format!("{kind}/"), kind.to_owned()),
        (None, None) => return Some(starting(current, kinds())),
    };
    let kind = ResourceKind::named(&kind).ok()?;
    let scope = ScopeArgs::from_arg_matches(verb).ok()?;
    let names = listed(verb, |connected| {
        kind.api(&connected.client, scope.namespace(connected))
    })?;
    let words = names.into_iter().map(|name| format!("{prefix}{name}"));
    Some(starting(current, words))
}

fn namespaces(verb: &ArgMatches, current: &str) -> Option<Vec<CompletionCandidate>> {
    let names = listed(verb, |connected| {
        Api::<Namespace>::all(connected.client.clone())
    })?;
    Some(starting(current, names.into_iter()))
}

fn contexts(verb: &ArgMatches, current: &str) -> Option<Vec<CompletionCandidate>> {
    let cluster = ClusterArgs::from_arg_matches(verb).ok()?;
    let names = cluster.contexts().ok()?;
    Some(starting(current, names.into_iter()))
}

/// The kind of `KIND NAME`, if a word before this one is a kind alone.
fn kind_before(verb: &ArgMatches, current: &str) -> Option<String> {
    let given: Vec<&String> = verb.get_many(TARGETS)?.collect();
    let before = match given.split_last() {
        Some((last, before)) if *last == current => before,
        _ => &given,
    };
    let kind = before.first()?;
    (!kind.contains('/')).then(|| kind.to_string())
}

fn kinds() -> impl Iterator<Item = String> {
    ResourceKind::all()
        .into_iter()
        .map(|kind| kind.name().to_lowercase())
}

fn starting(current: &str, words: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    words
        .filter(|word| word.starts_with(current))
        .map(CompletionCandidate::new)
        .collect()
}

/// The names of the objects that `api` lists in the cluster of this command line.
fn listed<K: Clone + DeserializeOwned + Debug>(
    verb: &ArgMatches,
    api: impl Fn(&Connected) -> Api<K>,
) -> Option<Vec<String>> {
    let cluster = ClusterArgs::from_arg_matches(verb).ok()?;
    let read = async {
        let connected = cluster.connect().await.ok()?;
        let listed = api(&connected).list_metadata(&ListParams::default()).await;
        let names = listed.ok()?.items.into_iter();
        Some(names.filter_map(|object| object.metadata.name).collect())
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    runtime.block_on(async { tokio::time::timeout(LONGEST, read).await.ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &str) -> String {
        let words = ["kubectl_complete-dbplane"].into_iter();
        let words = words.chain(line.split(' ')).map(OsString::from).collect();
        let mut out = Vec::new();
        for_kubectl(words, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn kubectl_gets_verbs_kinds_and_flags() {
        let verbs = completed("sta");
        assert!(verbs.starts_with("status\tShow "), "{verbs}");
        assert!(verbs.ends_with("\n:4\n"), "{verbs}");
        assert_eq!(completed("restart comp"), "compute\t\n:4\n");
        assert!(completed("status --kube").contains("--kubeconfig"));
    }

    #[test]
    fn contexts_come_from_the_kubeconfig() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let context = |name| format!("- {{name: {name}, context: {{cluster: a, user: a}}}}\n");
        let text = ["play", "prod", "test"].map(context).concat();
        std::fs::write(file.path(), format!("contexts:\n{text}")).unwrap();
        let line = format!("status --kubeconfig {} --context p", file.path().display());
        assert_eq!(completed(&line), "play\t\nprod\t\n:4\n");
    }

    #[test]
    fn an_unreadable_cluster_completes_nothing() {
        for words in ["compute or", "-n sh", "--context p"] {
            let line = format!("status --kubeconfig /nowhere {words}");
            assert_eq!(completed(&line), ":4\n");
        }
    }
}
