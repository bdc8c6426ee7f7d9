//! The reasons of conditions: a closed set. docs/conditions.md describes each and its remedy;
//! a test compares the two.

use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The reason of a condition.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[$doc])* $name),* }

        impl Reason {
            /// Every reason there is.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The text in the condition.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }
    };
}

reasons! {
    /// The platform's object is there and can be used.
    Available,
    /// The declared fields are in force.
    InSync,
    /// Not checked yet.
    Pending,
    /// The platform's object is being created.
    Creating,
    /// A create was sent and its outcome is not known yet.
    ConfirmingCreate,
    /// The platform is starting the compute.
    Starting,
    /// The platform shows the compute in a state that dbplane does not know.
    StateUnknown,
    /// A change is being made.
    Updating,
    /// A restart is being made.
    Restarting,
    /// A restart was called, and nothing shows that it was made.
    RestartUnconfirmed,
    /// The platform's object is being deleted, or the key revoked.
    Deleting,
    /// More was deleted within a minute than is allowed without confirmation.
    DeletionPaused,
    /// More was deleted within a minute than the account allows for all its namespaces.
    DeletionSlowed,
    /// spec.deletionProtection keeps the compute.
    DeletionProtected,
    /// A change that interrupts connections waits for the time that spec.disruption allows.
    WaitingForDisruption,
    /// A schedule or its time zone cannot be read.
    InvalidSchedule,
    /// dbplane.dev/paused is set.
    Paused,
    /// management is Observe and a declared field differs.
    Drifted,
    /// The platform accepted a setting and does not apply it.
    SettingNotApplied,
    /// Something else changes a declared field back again and again.
    DriftPersists,
    /// The stored object does not fit its definition.
    Unreadable,
    /// The account does not exist.
    AccountNotFound,
    /// The account exists and cannot be used.
    AccountNotReady,
    /// The ClusterAccount does not admit the namespace.
    NamespaceNotAllowed,
    /// The ClusterAccount does not admit the namespace for the project.
    ProjectNotAllowed,
    /// The Secret with the API key is missing, or lacks the key.
    CredentialsMissing,
    /// The platform does not accept the API key.
    Unauthorized,
    /// The API key may not do this.
    Forbidden,
    /// The base URL cannot be used.
    InvalidBaseUrl,
    /// The operator does not send anything to the base URL.
    PlatformNotAllowed,
    /// The account needs spec.organizationID for this.
    OrganizationMissing,
    /// Resources still use the account, or work with the key.
    InUse,
    /// The organization has nearly as many keys as the platform recommends at most.
    ManyKeys,
    /// Lists of the platform take more memory than dbplane has for them.
    ListsTooLarge,
    /// The platform lists entries that cannot be read.
    UnreadableEntries,
    /// Something else changes back what dbplane writes, each time.
    Overwritten,
    /// The API server refuses the status.
    StatusRefused,
    /// The API server refuses another request that the resource needs.
    RequestRefused,
    /// The platform cannot be reached or does not answer.
    PlatformUnreachable,
    /// The API server did not record a call in time, so it was not made.
    CallNotRecorded,
    /// The platform is busy or limits the rate of calls.
    PlatformBusy,
    /// The platform's answer is larger than what dbplane reads.
    AnswerTooLarge,
    /// The platform, or the API server, refuses what was asked for.
    Refused,
    /// A replica of the set needs attention, or could not be observed.
    ReplicaNotReady,
    /// The branch has a primary compute that this resource may not take over.
    PrimaryExists,
    /// Another resource has the same platform object or Secret.
    ClaimedByAnother,
    /// The compute that is imported or observed does not exist.
    ComputeNotFound,
    /// The computes do not show which one is the result of an unanswered create.
    AmbiguousCreate,
    /// A compute has appeared that may be the late result of an unanswered create.
    StrayCompute,
    /// The annotations that link the resource to the platform do not fit it.
    BindingConflict,
    /// The compute did not start in time.
    StartTimeout,
    /// An operation of the platform failed.
    OperationFailed,
    /// A Secret of that name exists and is not ours.
    SecretNotOurs,
    /// The connection Secret lacks what is declared.
    ConnectionIncomplete,
    /// The Secret could not be written.
    SecretNotWritten,
    /// The key is no longer accepted by the platform.
    KeyRevoked,
    /// The platform does not accept the key that was to replace another one.
    NewKeyRefused,
    /// A key is replaced only once one of the previous keys is revoked.
    RotationWaiting,
    /// The platform offers no call to revoke keys.
    RevocationUnsupported,
    /// A key that another cluster created is not revoked here.
    KeyOfAnotherCluster,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
