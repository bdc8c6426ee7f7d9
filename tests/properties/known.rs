//! Shrunk histories that once broke a promise. A seed would not do: it yields another history once
//! a strategy changes.

use dbplane_simulator::world::Profile;

use super::faults::{Carried, Fault, Hit};
use super::history::{Access, Chapter, Declared, Event, History};

/// Each history with a description of what went wrong.
pub fn histories() -> Vec<(&'static str, History)> {
    [
        of_computes(),
        of_branches_with_others(),
        of_late_creates(),
        of_repeated_creates(),
        of_keys(),
    ]
    .concat()
}

fn of_computes() -> Vec<(&'static str, History)> {
    vec![
        (
            "a connection Secret that a backup restored without its owner",
            computes(
                &[&replica()],
                &[(Event::Nothing, 2), (Event::Rebuild, 0)],
                &[],
            ),
        ),
        (
            "one that the backup has from between the two writes of it",
            computes(
                &[&replica()],
                &[(Event::Nothing, 2), (Event::Rebuild, 0)],
                &[(7, Fault::Dies(Carried::Now))],
            ),
        ),
        (
            "a restart that is asked for again with a token of before",
            History {
                profile: Profile::Default,
                ..computes(
                    &[&replica()],
                    &[
                        (Event::Restart(0, 1), 1),
                        (Event::Restart(0, 0), 30),
                        (Event::Restart(0, 1), 0),
                    ],
                    &[],
                )
            },
        ),
    ]
}

/// Others create computes on the branch, or a copy of the resource claims its compute.
fn of_branches_with_others() -> Vec<(&'static str, History)> {
    vec![
        (
            "a primary that somebody else creates while the process dies",
            computes(
                &[&elsewhere(primary()), &replica()],
                &[(Event::ForeignCompute(1, true), 0)],
                &[(5, Fault::Dies(Carried::Now))],
            ),
        ),
        (
            "an account whose next check shows that names are kept, beside a Compute that waits for a person",
            History {
                profile: Profile::Default,
                ..computes(
                    &[&replica(), &elsewhere(replica())],
                    &[(Event::ForeignCompute(1, false), 18), (Event::Nothing, 118)],
                    &[
                        (21, Fault::Silence(Carried::Never)),
                        (1, Fault::Silence(Carried::Now)),
                    ],
                )
            },
        ),
        (
            "a copy of a resource that is then deleted and applied again",
            computes(
                &[&replica(), &primary()],
                &[
                    (Event::Copied(1), 0),
                    (Event::Delete(1), 7),
                    (Event::Reapply(1, false), 0),
                ],
                &[(19, Fault::Dies(Carried::Now))],
            ),
        ),
    ]
}

/// Creates that are carried out after the request timeout.
fn of_late_creates() -> Vec<(&'static str, History)> {
    vec![
        (
            "a create that arrives after its successor has given up waiting",
            computes(
                &[&replica()],
                &[(Event::Nothing, 72)],
                &[
                    (3, Fault::Dies(Carried::Now)),
                    (1, SILENCE),
                    (3, SILENCE),
                    (4, Fault::Dies(Carried::Late(66))),
                ],
            ),
        ),
        (
            "a create that arrives after its resource was deleted",
            computes(
                &[&replica()],
                &[(Event::Nothing, 1), (Event::Delete(0), 0)],
                &[(2, SILENCE), (3, Fault::Dies(Carried::Late(66)))],
            ),
        ),
        (
            "a create that arrives after its resource was deleted, and another of that name was created",
            History {
                key: true,
                profile: Profile::Minimal,
                ..computes(
                    &[&elsewhere(replica()), &elsewhere(replica())],
                    &[
                        (Event::Reapply(0, false), 90),
                        (Event::Delete(1), 8),
                        (Event::Reapply(1, false), 0),
                    ],
                    &[
                        (5, SILENCE),
                        (0, SILENCE),
                        (34, Fault::Silence(Carried::Late(91))),
                    ],
                )
            },
        ),
    ]
}

/// Creates that the platform carries out twice.
fn of_repeated_creates() -> Vec<(&'static str, History)> {
    vec![
        (
            "a primary whose create is repeated on the way, in a project that shows no names yet",
            History {
                profile: Profile::Default,
                ..computes(
                    &[&primary()],
                    &[(Event::Nothing, 1)],
                    &[(0, Fault::Repeated)],
                )
            },
        ),
        (
            "a create that is repeated on the way, in a project that shows no names yet, by a process that dies before its answer",
            History {
                profile: Profile::Default,
                ..computes(
                    &[&replica()],
                    &[(Event::Role(None), 7)],
                    &[
                        (24, Fault::Dies(Carried::Now)),
                        (0, Fault::Repeated),
                        (0, Fault::Dies(Carried::Never)),
                    ],
                )
            },
        ),
        (
            "a create that is repeated on the way beside another one on the branch, after a process has died",
            History {
                key: true,
                profile: Profile::Default,
                ..computes(
                    &[&replica(), &replica()],
                    &[(Event::Role(None), 3)],
                    &[(30, Fault::Dies(Carried::Now)), (0, Fault::Repeated)],
                )
            },
        ),
        (
            "one whose process dies before its answer, beside another one on the branch that waits for it",
            History {
                key: true,
                profile: Profile::Default,
                ..computes(
                    &[&replica(), &replica()],
                    &[(Event::Nothing, 61)],
                    &[
                        (17, SILENCE),
                        (0, Fault::Repeated),
                        (0, Fault::Dies(Carried::Never)),
                    ],
                )
            },
        ),
    ]
}

const SILENCE: Fault = Fault::Silence(Carried::Never);

fn replica() -> Declared {
    Declared {
        branch: 0,
        primary: false,
        size: 0,
    }
}

fn primary() -> Declared {
    Declared {
        primary: true,
        ..replica()
    }
}

/// The same Compute on the other branch.
fn elsewhere(declared: Declared) -> Declared {
    Declared {
        branch: 1,
        ..declared
    }
}

fn computes(computes: &[&Declared], chapters: &[(Event, u16)], faults: &[(u16, Fault)]) -> History {
    history(Profile::Public, computes, chapters, faults)
}

fn of_keys() -> Vec<(&'static str, History)> {
    let dies = || Fault::Dies(Carried::Never);
    vec![(
        "a platform that once did not offer its list of keys",
        History {
            key: true,
            ..history(
                Profile::Default,
                &[],
                &[
                    (Event::KeyDeleted, 1),
                    (Event::KeyRevoked, 9),
                    (Event::KeyReapplied(true), 2),
                    (Event::KeyDeleted, 1),
                ],
                &[
                    (30, dies()),
                    (0, dies()),
                    (14, Fault::Cut),
                    (27, Fault::Refused(404)),
                ],
            )
        },
    )]
}

fn history(
    profile: Profile,
    computes: &[&Declared],
    chapters: &[(Event, u16)],
    faults: &[(u16, Fault)],
) -> History {
    History {
        profile,
        computes: computes
            .iter()
            .map(|declared| (*declared).clone())
            .collect(),
        key: false,
        chapters: chapters
            .iter()
            .map(|(event, seconds)| Chapter {
                event: event.clone(),
                seconds: *seconds,
            })
            .collect(),
        faults: faults
            .iter()
            .map(|(after, fault)| Hit {
                after: *after,
                fault: fault.clone(),
            })
            .collect(),
        account: Access::Account,
        deletes_per_minute: 30,
    }
}
