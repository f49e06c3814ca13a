//! Is going away.
