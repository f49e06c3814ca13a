use std::{fmt, sync::Arc, time::Duration};

use carton_format::{Sha256, fetch::FetchError};
use ureq::{
    Agent,
    config::{AutoHeaderValue, Config},
    tls::{PemItem, RootCerts, TlsConfig, parse_pem},
    unversioned::transport::DefaultConnector,
};

use super::address::Gate;
use crate::hosts::{self, Rule};

/// What a fetcher may do, and how long and how much.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    pub(super) network: Network,
    pub(super) schemes: Schemes,
    pub(super) hosts: Hosts,
    proxy: Proxy,
    authorities: Option<Vec<u8>>,
    pub(super) max_bytes: u64,
    pub(super) first_byte: Duration,
    pub(super) stall: Duration,
    pub(super) min_rate: u64,
    progress: Option<Arc<ProgressFn>>,
}

type ProgressFn = dyn Fn(Progress) + Send + Sync;

macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $type:ty;)*) => {
        impl HttpOptions {$(
            $(#[$doc])*
            #[must_use]
            pub const fn $field(mut self, $field: $type) -> Self {
                self.$field = $field;
                self
            }
        )*}
    };
}

setters! {
    /// Sets whether servers may be asked at all; they may by default.
    network: Network;

    /// Sets which schemes may be asked for; only https by default.
    schemes: Schemes;

    /// Sets which hosts may be connected to; only those with public addresses by default.
    hosts: Hosts;

    /// Sets whether a proxy stands between; none does by default.
    proxy: Proxy;

    /// Sets the most bytes that a body may have, and again that may be decoded from it, where the
    /// length of the content is not known; 16 GiB by default.
    max_bytes: u64;

    /// Sets how long each step up to the first byte of an answer may take: finding the address,
    /// connecting, asking, waiting; 30 seconds by default. The time of [`stall`](Self::stall) bounds
    /// the last of them too.
    first_byte: Duration;

    /// Sets how long a body may send nothing; 60 seconds by default.
    stall: Duration;

    /// Sets how many bytes a second a body has to bring, over each time of [`stall`](Self::stall);
    /// 1024 by default. With [`max_bytes`](Self::max_bytes) this bounds the time of a body.
    min_rate: u64;
}

impl HttpOptions {
    /// Sets the certificate authorities that are trusted, in PEM; by default those that Mozilla
    /// trusts, whose place these take.
    #[must_use]
    pub fn authorities(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authorities = Some(pem.into());
        self
    }

    /// Sets what is told about each body while it comes.
    #[must_use]
    pub fn progress(mut self, progress: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }

    pub(super) fn tell(&self, progress: Progress) {
        if let Some(tell) = &self.progress {
            tell(progress);
        }
    }

    pub(super) fn rule(&self) -> Rule {
        match self.hosts {
            Hosts::Public => hosts::is_public,
            Hosts::Any => hosts::is_store,
        }
    }

    /// Builds the client, which connects to addresses that the rule allows.
    pub(super) fn agent(&self, rule: Rule) -> Result<Agent, FetchError> {
        let proxy = match self.proxy {
            Proxy::None => None,
            Proxy::Environment => ureq::Proxy::try_from_env(),
        };
        let gate = Gate::new(rule, proxy.as_ref().map(|proxy| proxy.uri().clone()));
        let config = Config::builder()
            // Without this the environment decides, and a proxy connects to what it likes.
            .proxy(proxy)
            .https_only(self.schemes == Schemes::Https)
            .tls_config(TlsConfig::builder().root_certs(self.roots()?).build())
            .http_status_as_error(false)
            // Redirects are followed by us, so that each is checked.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("modelcrate/", env!("CARGO_PKG_VERSION")))
            .accept_encoding(AutoHeaderValue::None)
            .timeout_resolve(Some(self.first_byte))
            .timeout_connect(Some(self.first_byte))
            .timeout_send_request(Some(self.first_byte))
            .timeout_recv_response(Some(self.first_byte))
            .timeout_per_read(Some(self.stall))
            .build();
        Ok(Agent::with_parts(config, DefaultConnector::default(), gate))
    }

    fn roots(&self) -> Result<RootCerts, FetchError> {
        let Some(pem) = &self.authorities else {
            return Ok(RootCerts::WebPki);
        };
        let wrong = |found: &'static str| FetchError::Setting {
            what: "text of certificate authorities",
            found: found.into(),
            expected: "certificates in PEM",
        };
        let mut certificates = Vec::new();
        for item in parse_pem(pem) {
            match item {
                Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
                Ok(_) => {}
                Err(_) => return Err(wrong("malformed")),
            }
        }
        if certificates.is_empty() {
            return Err(wrong("without any"));
        }
        Ok(RootCerts::from(certificates))
    }
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            network: Network::default(),
            schemes: Schemes::default(),
            hosts: Hosts::default(),
            proxy: Proxy::default(),
            authorities: None,
            max_bytes: 16 << 30,
            first_byte: Duration::from_secs(30),
            stall: Duration::from_secs(60),
            min_rate: 1024,
            progress: None,
        }
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("network", &self.network)
            .field("schemes", &self.schemes)
            .field("hosts", &self.hosts)
            .field("proxy", &self.proxy)
            .field("max_bytes", &self.max_bytes)
            .field("first_byte", &self.first_byte)
            .field("stall", &self.stall)
            .field("min_rate", &self.min_rate)
            .finish_non_exhaustive()
    }
}

/// Whether servers may be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// They are asked for what is not in the cache.
    #[default]
    Online,
    /// Only the cache answers.
    Offline,
}

/// Which schemes may be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schemes {
    /// Only https.
    #[default]
    Https,
    /// Also http, whose answers anybody between can read, but, as their digest is compared, not
    /// change.
    HttpsAndHttp,
}

impl Schemes {
    pub(super) fn allow(self, scheme: &str) -> bool {
        scheme == "https" || (scheme == "http" && self == Self::HttpsAndHttp)
    }

    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Https => "\"https\"",
            Self::HttpsAndHttp => "\"https\" or \"http\"",
        }
    }
}

/// Which hosts may be connected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hosts {
    /// Those with addresses of the public Internet, so that a file from a stranger cannot reach
    /// into the user's own network.
    #[default]
    Public,
    /// All, as a store inside a company needs, but for link-local addresses and the metadata services
    /// of clouds: no store is there, and secrets are.
    Any,
}

impl Hosts {
    /// Says which address would do.
    pub(super) const fn expected(self) -> &'static str {
        match self {
            Self::Public => "a public one",
            Self::Any => "one that is neither link-local nor a metadata service",
        }
    }
}

/// Whether a proxy stands between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proxy {
    /// None, whatever the environment says.
    #[default]
    None,
    /// The one that the environment names (`ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY`; `NO_PROXY`).
    /// It resolves names itself, so it, and not [`Hosts`], decides where they lead.
    Environment,
}

/// How far a body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The SHA-256 of the content.
    pub sha256: Sha256,
    /// How many bytes of the body are there, before decoding.
    pub received: u64,
    /// How many it will have, where the server says.
    pub total: Option<u64>,
}
