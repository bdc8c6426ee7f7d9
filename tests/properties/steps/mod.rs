//! Steps under adverse conditions: lost, refused or slow requests, and concurrent changes by
//! others. They are as fast as `reports`, so that `make mutants` can judge each change of a step with
//! both.

mod accounts;
mod changes;
mod creates;
mod keys;
mod refused;
mod restarts;
mod rotating;
mod turns;
