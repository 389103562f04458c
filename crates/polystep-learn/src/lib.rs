//! polystep-learn
