//! The throttle on virtual time: against simulated quotas, and against arbitrary histories.

mod gate;
mod lanes;
mod losses;
mod properties;
mod quota;
mod random;
mod scenarios;
mod shared;
mod simulation;
mod steady;
