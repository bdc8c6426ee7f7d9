//! What each step does where something does not go as usual: while requests are lost, refused or slow, and while others act.
//! They are as fast as `told`, so that both can judge each change that `make mutants` makes to a step.

mod accounts;
mod changes;
mod creates;
mod keys;
mod refused;
mod restarts;
mod rotating;
mod turns;
