//! Converts operations of the platform for the status.

use crate::api::LastOperation;
use crate::domain::Operation;

pub(super) fn shown(operations: Vec<Operation>) -> Vec<LastOperation> {
    let shown = |operation: Operation| LastOperation {
        id: operation.id,
        action: operation.action,
        status: operation.status,
        failures: operation.failures.filter(|failures| *failures > 0),
        error: operation.error,
    };
    operations.into_iter().map(shown).collect()
}
