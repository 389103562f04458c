//! polystep-core
