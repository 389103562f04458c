//! polystep-engine
