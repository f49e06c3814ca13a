//! Which addresses may be connected to.

use std::{fmt, net::IpAddr};

use ureq::{
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::NextTimeout,
    },
};

use crate::hosts::Rule;

/// Resolves names and hands out only those addresses that a rule allows: what is connected to is
/// what was checked, so a name that resolves to something else a moment later gains nothing.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Tells the addresses that may be connected to.
    pub(crate) rule: Rule,
    /// The proxy, which the user chose and which may well be private.
    pub(crate) proxy: Option<Uri>,
    system: DefaultResolver,
}

impl Gate {
    pub(crate) fn new(rule: Rule, proxy: Option<Uri>) -> Self {
        Self { rule, proxy, system: DefaultResolver::default() }
    }
}

impl Resolver for Gate {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.system.resolve(uri, config, timeout)?;
        if self.proxy.as_ref() == Some(uri) {
            return Ok(found);
        }
        let mut allowed = self.empty();
        for address in found.iter().filter(|address| (self.rule)(address.ip())) {
            allowed.push(*address);
        }
        match found.first() {
            Some(first) if allowed.is_empty() => {
                Err(ureq::Error::Other(Box::new(Refused(first.ip()))))
            }
            _ => Ok(allowed),
        }
    }
}

/// Carries an address that is not allowed through the errors of ureq.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) IpAddr);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "address {} is not public", self.0)
    }
}

impl std::error::Error for Refused {}
