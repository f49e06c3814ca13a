//! Buckets, by `object_store`.

use std::{
    error::Error as StdError,
    fmt,
    future::Future,
    ops::Range,
    pin::Pin as Pinned,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures_util::StreamExt as _;
use object_store::{
    ClientConfigKey, ClientOptions, GetOptions, GetRange, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMode, PutOptions, PutPayload, RetryConfig, StaticCredentialProvider,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
        HttpResponseBody, HttpService,
    },
    gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey},
    multipart::{MultipartStore, PartId},
    path::Path,
};
use tensor_core::{Chain, Limit, text::Quoted};
use url::Url;

use super::{
    Error, RemoteOptions, Result,
    answer::{Answer, Body, Pace, Pin, Version, clipped},
    credentials,
    error::foreign,
    list::List,
    location::{Scheme, is_loopback, odd_part},
    stats::Counters,
};

/// A bucket of a store.
#[derive(Clone)]
pub(super) struct Bucket {
    objects: Arc<dyn ObjectStore>,
    parts: Arc<dyn MultipartStore>,
    scheme: Scheme,
    options: Arc<RemoteOptions>,
    list: Arc<List>,
}

/// An object of a listing.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) key: String,
    pub(super) len: u64,
    pub(super) version: Version,
}

impl Bucket {
    /// Stands for a bucket of a cloud, or of the endpoint that options or the environment name. Nothing
    /// is asked for.
    pub(super) fn new(
        scheme: Scheme,
        name: &str,
        options: &Arc<RemoteOptions>,
        counters: &Arc<Counters>,
    ) -> Result<Self> {
        let list = Arc::<List>::default();
        let connector = Connector {
            counters: Arc::clone(counters),
            options: Arc::clone(options),
            list: Arc::clone(&list),
        };
        let no_retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let wrong = |error: object_store::Error| Error::Setting {
            what: "setting of a bucket",
            reason: last(&error),
        };
        let client = client_settings(options);
        let check = |endpoint: Option<String>| allows_http(endpoint, options);
        match scheme {
            Scheme::S3 => {
                use AmazonS3ConfigKey::{Client, Endpoint, Region};
                let mut builder = AmazonS3Builder::from_env().with_bucket_name(name);
                builder = with_profile(builder);
                for (key, value) in client {
                    builder = builder.with_config(Client(key), value);
                }
                if let Some(endpoint) = &options.endpoint {
                    builder = builder.with_endpoint(endpoint);
                }
                if builder.get_config_value(&Region).is_none() {
                    builder = builder.with_region("us-east-1");
                }
                let allow = check(builder.get_config_value(&Endpoint))?;
                builder = builder.with_allow_http(allow);
                let store = builder.with_retry(no_retry).with_http_connector(connector).build();
                Ok(Self::of(Arc::new(store.map_err(wrong)?), scheme, options, list))
            }
            Scheme::Gs => {
                use GoogleConfigKey::{BaseUrl, Client, SkipSignature};
                let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(name);
                for (key, value) in client {
                    builder = builder.with_config(Client(key), value);
                }
                if let Some(endpoint) = &options.endpoint {
                    builder = builder.with_base_url(endpoint);
                }
                if builder.get_config_value(&SkipSignature).as_deref() == Some("true") {
                    // It looks for credentials all the same where it writes.
                    let nobody = GcpCredential { bearer: String::new() };
                    let nobody = StaticCredentialProvider::new(nobody);
                    builder = builder.with_credentials(Arc::new(nobody));
                }
                let allow = check(builder.get_config_value(&BaseUrl))?;
                builder =
                    builder.with_config(Client(ClientConfigKey::AllowHttp), allow.to_string());
                let store = builder.with_retry(no_retry).with_http_connector(connector).build();
                Ok(Self::of(Arc::new(store.map_err(wrong)?), scheme, options, list))
            }
            Scheme::Az => {
                use AzureConfigKey::{Client, Endpoint, UseEmulator};
                let mut builder = MicrosoftAzureBuilder::from_env().with_container_name(name);
                for (key, value) in client {
                    builder = builder.with_config(Client(key), value);
                }
                if let Some(endpoint) = &options.endpoint {
                    builder = builder.with_endpoint(endpoint.clone());
                }
                // The emulator is on this machine.
                let emulated = builder.get_config_value(&UseEmulator).as_deref() == Some("true");
                let allow = check(builder.get_config_value(&Endpoint))? || emulated;
                builder = builder.with_allow_http(allow);
                let store = builder.with_retry(no_retry).with_http_connector(connector).build();
                Ok(Self::of(Arc::new(store.map_err(wrong)?), scheme, options, list))
            }
        }
    }

    pub(super) fn of<S: ObjectStore + MultipartStore>(
        store: Arc<S>,
        scheme: Scheme,
        options: &Arc<RemoteOptions>,
        list: Arc<List>,
    ) -> Self {
        let (objects, options) = (Arc::clone(&store) as _, Arc::clone(options));
        Self { objects, parts: store, scheme, options, list }
    }

    /// Returns a part of an object, of the pinned version where there is one.
    pub(super) async fn get(
        &self,
        key: &Path,
        range: Range<u64>,
        pin: Option<&Pin>,
        counters: &Counters,
    ) -> Result<Answer> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            if_match: pin.and_then(|pin| pin.version.strong_etag()).map(str::to_owned),
            ..GetOptions::default()
        };
        let got = match self.objects.get_opts(key, options).await {
            Ok(got) => got,
            Err(error) => return self.without_range(error, key, range, pin).await,
        };
        let (len, version) = (got.meta.size, version(&got.meta));
        if let Some(pin) = pin {
            pin.check(&version, len)?;
        }
        let (found, expected) = (got.range.clone(), clipped(&range, len));
        if found != expected {
            let [found, expected] = [found, expected].map(|range| format!("{range:?}"));
            return Err(Error::Range { found, expected });
        }
        let mut body = Body::new(expected.end.saturating_sub(expected.start), counters);
        let (mut pieces, mut pace) = (got.into_stream(), Pace::new(self.options.timeout));
        while let Some(piece) = pace.next(pieces.next()).await? {
            match piece.map_err(|error| self.error(&error)) {
                Ok(piece) => {
                    pace.add(piece.len());
                    body.add(&piece)?;
                }
                // It broke off.
                Err(Error::Connection { .. } | Error::Store { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(Answer { bytes: body.finish()?, len, version })
    }

    /// Returns no bytes where there are none: an empty object has no range.
    async fn without_range(
        &self,
        error: object_store::Error,
        key: &Path,
        range: Range<u64>,
        pin: Option<&Pin>,
    ) -> Result<Answer> {
        let error = self.error(&error);
        let may_be_empty = match error {
            Error::Status { found, .. } => found == 416,
            Error::Store { .. } => true,
            _ => false,
        };
        if may_be_empty && pin.is_none() && range.start == 0 {
            let meta = self.objects.head(key).await.map_err(|error| self.error(&error))?;
            if meta.size == 0 {
                return Ok(Answer { bytes: Bytes::new(), len: 0, version: version(&meta) });
            }
        }
        Err(error)
    }

    /// Returns all objects whose keys start so, those too that cannot be asked for.
    pub(super) async fn list(&self, folder: &str) -> Result<Vec<Object>> {
        let prefix = path(folder.trim_end_matches('/'))?;
        self.list.begin(folder);
        let mut listed = self.objects.list(Some(&prefix).filter(|path| !path.as_ref().is_empty()));
        let limits = self.options.limits;
        let (mut objects, mut bytes) = (Vec::new(), 0_u64);
        while let Some(meta) = listed.next().await {
            let meta = meta.map_err(|error| self.error(&error))?;
            let (key, version) = (meta.location.to_string(), version(&meta));
            bytes = bytes.saturating_add(key.len() as u64);
            objects.push(Object { key, len: meta.size, version });
            let files = objects.len() as u64;
            limits
                .check(Limit::Entries, "number of files", files)
                .map_err(|error| Error::list(error.to_string()))?;
            let what = "length of all keys in bytes";
            limits
                .check(Limit::ManifestBytes, what, bytes)
                .map_err(|error| Error::list(error.to_string()))?;
        }
        objects.extend(self.list.odd(folder));
        Ok(objects)
    }

    pub(super) async fn head(&self, key: &Path) -> Result<(u64, Version)> {
        let meta = self.objects.head(key).await.map_err(|error| self.error(&error))?;
        Ok((meta.size, version(&meta)))
    }

    /// Writes a whole object by one request.
    pub(super) async fn put(&self, key: &Path, bytes: Bytes, may_replace: bool) -> Result<()> {
        let mode = if may_replace { PutMode::Overwrite } else { PutMode::Create };
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self.objects.put_opts(key, PutPayload::from_bytes(bytes), options).await;
        put.map(drop).map_err(|error| self.error(&error))
    }

    pub(super) async fn begin(&self, key: &Path) -> Result<String> {
        self.parts.create_multipart(key).await.map_err(|error| self.error(&error))
    }

    pub(super) async fn put_part(
        &self,
        key: &Path,
        id: &String,
        index: usize,
        bytes: Bytes,
    ) -> Result<PartId> {
        let put = self.parts.put_part(key, id, index, PutPayload::from_bytes(bytes)).await;
        put.map_err(|error| self.error(&error))
    }

    pub(super) async fn complete(&self, key: &Path, id: &String, parts: Vec<PartId>) -> Result<()> {
        let completed = self.parts.complete_multipart(key, id, parts).await;
        completed.map(drop).map_err(|error| self.error(&error))
    }

    pub(super) async fn abort(&self, key: &Path, id: &String) -> Result<()> {
        self.parts.abort_multipart(key, id).await.map_err(|error| self.error(&error))
    }

    /// Says what is wrong, without the texts of others, which may have what is secret.
    fn error(&self, error: &object_store::Error) -> Error {
        use object_store::Error as Store;
        let hint = match self.scheme {
            Scheme::S3 => {
                "credentials are taken from AWS_… variables, a profile, or the machine; \
                 AWS_SKIP_SIGNATURE=true asks without"
            }
            Scheme::Gs => {
                "credentials are taken from GOOGLE_… variables, the application default, or the \
                 machine; GOOGLE_SKIP_SIGNATURE=true asks without"
            }
            Scheme::Az => {
                "credentials are taken from AZURE_… variables or the machine; \
                 AZURE_SKIP_SIGNATURE=true asks without"
            }
        };
        match error {
            Store::NotFound { .. } => Error::NotFound { hint: "" },
            Store::Precondition { .. } => Error::Changed,
            Store::AlreadyExists { .. } => Error::Exists,
            Store::PermissionDenied { .. } => Error::Denied { status: 403, hint },
            Store::Unauthenticated { .. } => Error::Denied { status: 401, hint },
            error => failure(error, self.options.timeout.as_secs()),
        }
    }
}

/// Says what is wrong where that is not what was asked for.
fn failure(error: &(dyn StdError + 'static), seconds: u64) -> Error {
    for cause in Chain(error).errors() {
        if let Some(Refused { status, code }) = cause.downcast_ref() {
            return Error::Status { found: *status, code: code.clone() };
        }
        if let Some(Error::Document { what, reason }) = cause.downcast_ref() {
            return Error::Document { what, reason: reason.clone() };
        }
        let http = cause.downcast_ref::<HttpError>();
        if http.is_some_and(|error| error.kind() == HttpErrorKind::Timeout) {
            return Error::Timeout { seconds };
        }
    }
    match Chain(error).errors().any(<dyn StdError>::is::<HttpError>) {
        true => Error::Connection { reason: last(error) },
        false => Error::Store { reason: last(error) },
    }
}

/// Returns the text of the last cause of an error, which has no URL.
fn last(error: &(dyn StdError + 'static)) -> String {
    let text = Chain(error).errors().last().unwrap_or(error).to_string();
    // What stood behind it is taken off.
    foreign(text.trim_end().trim_end_matches(':'))
}

fn version(meta: &ObjectMeta) -> Version {
    let modified = SystemTime::from(meta.last_modified);
    let modified = Some(modified).filter(|time| *time != SystemTime::UNIX_EPOCH);
    Version { etag: meta.e_tag.clone(), modified }
}

/// Returns the path of a key, none of whose characters is changed.
pub(super) fn path(key: &str) -> Result<Path> {
    let wrong = |reason: String| Error::Store { reason: format!("key {reason}") };
    if let Some(reason) = odd_part(key) {
        return Err(wrong(reason.to_owned()));
    }
    Path::parse(key).map_err(|error| wrong(foreign(&error.to_string())))
}

fn client_settings(options: &RemoteOptions) -> [(ClientConfigKey, String); 4] {
    let stall = format!("{} ms", options.timeout.as_millis());
    [
        // Whole answers are bounded by us, by their length.
        (ClientConfigKey::Timeout, "1 day".to_owned()),
        (ClientConfigKey::ReadTimeout, stall.clone()),
        (ClientConfigKey::ConnectTimeout, stall),
        (ClientConfigKey::UserAgent, super::web::AGENT.to_owned()),
    ]
}

/// Tells whether an endpoint may be asked by `http`: one of this machine, or by option.
fn allows_http(endpoint: Option<String>, options: &RemoteOptions) -> Result<bool> {
    let Some(endpoint) = endpoint else { return Ok(options.allow_http) };
    let wrong = |reason: String| Error::Setting { what: "endpoint", reason };
    let url = Url::parse(&endpoint).map_err(|error| wrong(error.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it has a user or a password".to_owned()));
    }
    let allowed = options.allow_http || is_loopback(&url);
    match url.scheme() {
        "https" => Ok(options.allow_http),
        "http" if allowed => Ok(true),
        "http" => Err(wrong(super::web::INSECURE.to_owned())),
        scheme => Err(wrong(format!("scheme is {scheme:?}, expected \"https\""))),
    }
}

/// Adds what a profile says where the environment says nothing.
fn with_profile(mut builder: AmazonS3Builder) -> AmazonS3Builder {
    use AmazonS3ConfigKey::{AccessKeyId, Endpoint, Region, SecretAccessKey, Token};
    let profile = credentials::aws_profile();
    // Keys belong together: those of one place are not mixed with those of another.
    let has_keys = builder.get_config_value(&AccessKeyId).is_some();
    for (name, key) in [
        ("aws_access_key_id", AccessKeyId),
        ("aws_secret_access_key", SecretAccessKey),
        ("aws_session_token", Token),
        ("region", Region),
        ("endpoint_url", Endpoint),
    ] {
        let is_key = name.starts_with("aws_");
        let is_free = if is_key { !has_keys } else { builder.get_config_value(&key).is_none() };
        if let Some(value) = profile.get(name).filter(|value| is_free && !value.is_empty()) {
            builder = builder.with_config(key, value);
        }
    }
    builder
}

/// Makes clients that count requests, bound what they answer, and turn what a server refuses into an
/// error without a text of its own.
#[derive(Debug)]
struct Connector {
    counters: Arc<Counters>,
    options: Arc<RemoteOptions>,
    list: Arc<List>,
}

impl HttpConnector for Connector {
    fn connect(&self, settings: &ClientOptions) -> object_store::Result<HttpClient> {
        let value = |settings: &ClientOptions, key| settings.get_config_value(&key);
        let usual = client_settings(&self.options).into_iter();
        let usual =
            usual.fold(ClientOptions::new(), |all, (key, value)| all.with_config(key, value));
        let [found, usual] =
            [settings, &usual].map(|settings| value(settings, ClientConfigKey::ConnectTimeout));
        // What a machine of a cloud offers is there at once, or not at all.
        let patience = if found == usual { self.options.timeout } else { METADATA };
        let allows_http = value(settings, ClientConfigKey::AllowHttp).as_deref() == Some("true");
        let client = super::web::builder(&self.options, patience).https_only(!allows_http).build();
        let client = client.map_err(|error| object_store::Error::Generic {
            store: "client",
            source: Box::new(error),
        })?;
        let (counters, options) = (Arc::clone(&self.counters), Arc::clone(&self.options));
        let list = Arc::clone(&self.list);
        Ok(HttpClient::new(Counting { client: HttpClient::new(client), counters, options, list }))
    }
}

#[derive(Debug)]
struct Counting {
    client: HttpClient,
    counters: Arc<Counters>,
    options: Arc<RemoteOptions>,
    list: Arc<List>,
}

type Answered<'a> =
    Pinned<Box<dyn Future<Output = std::result::Result<HttpResponse, HttpError>> + Send + 'a>>;

impl HttpService for Counting {
    fn call<'s, 'a>(&'s self, request: HttpRequest) -> Answered<'a>
    where
        's: 'a,
        Self: 'a,
    {
        Box::pin(async move {
            self.counters.request();
            let query = request.uri().query().unwrap_or_default();
            let is_list = ["list-type=2", "comp=list"].iter().any(|part| query.contains(part));
            let (is_read, is_post) = (request.method() == "GET", request.method() == "POST");
            let is_part = request.headers().contains_key("range");
            let late = |error| HttpError::new(HttpErrorKind::Timeout, error);
            let pace = Pace::new(self.options.timeout);
            let answer = self.client.execute(request);
            // How long it takes to write is known to whoever writes.
            let response =
                if is_read { pace.next(answer).await.map_err(late)?? } else { answer.await? };
            match response.status().as_u16() {
                200..300 if !is_part => {
                    let (head, body) = response.into_parts();
                    let mut body = self.document(body, pace).await?;
                    if is_list {
                        body = self.list.without_odd(&body)?;
                    }
                    Ok(HttpResponse::from_parts(head, body.into()))
                }
                200..300 => Ok(response),
                // Those that mean something to what asks; what comes along is for nobody to see.
                status @ (304 | 401 | 403 | 404 | 409 | 412) if !is_post || status != 404 => {
                    let (head, _) = response.into_parts();
                    Ok(HttpResponse::from_parts(head, Bytes::new().into()))
                }
                status => {
                    let code = code(response).await;
                    Err(HttpError::new(HttpErrorKind::Unknown, Refused { status, code }))
                }
            }
        })
    }
}

impl Counting {
    /// Reads what is no part of a file: a list, a token, what became of an upload.
    async fn document(
        &self,
        body: HttpResponseBody,
        mut pace: Pace,
    ) -> std::result::Result<Vec<u8>, HttpError> {
        let limit = self.options.limits.document_bytes;
        let late = |error| HttpError::new(HttpErrorKind::Timeout, error);
        let (mut bytes, mut pieces) = (Vec::new(), body.bytes_stream());
        while let Some(piece) = pace.next(pieces.next()).await.map_err(late)? {
            let piece = piece?;
            pace.add(piece.len());
            bytes.extend_from_slice(&piece);
            if bytes.len() as u64 > limit {
                return Err(HttpError::new(HttpErrorKind::Unknown, Error::too_long(limit)));
            }
        }
        Ok(bytes)
    }
}

/// A status that is no answer.
#[derive(Debug)]
struct Refused {
    status: u16,
    code: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status is {}{}", self.status, self.code)
    }
}

impl StdError for Refused {}

/// Returns what a store calls its refusal, such as ` (SlowDown)`.
async fn code(response: HttpResponse) -> String {
    let region = response.headers().get("x-amz-bucket-region").cloned();
    if let Some(region) = region.as_ref().and_then(|region| region.to_str().ok()) {
        return format!(" (the bucket is in region {}, which AWS_REGION names)", Quoted(region));
    }
    let (mut text, mut pieces) = (Vec::new(), response.into_body().bytes_stream());
    while let Some(Ok(piece)) = pieces.next().await {
        text.extend_from_slice(&piece);
        if text.len() > 16 << 10 {
            break;
        }
    }
    let text = String::from_utf8_lossy(&text);
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let is_code = |code: &&str| code.len() < 64 && code.bytes().all(|b| b.is_ascii_alphanumeric());
    let code = code.map(|(code, _)| code).filter(is_code);
    code.map(|code| format!(" ({code})")).unwrap_or_default()
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

/// How long a connection may take to what a machine of a cloud offers its programs.
const METADATA: Duration = Duration::from_secs(1);
