//! Settings of TLS, SASL and authorisation.

use super::super::setting::{Kind::*, Range::*, Setting, Status::*, UpdateMode::*};

settings! {
    "authorizer.class.name": String => Some(""), Any, ReadOnly, Refused;
    "Java class that decides what a client may do; empty lets everybody do everything.";
    "delegation.token.expiry.check.interval.ms": Long => Some("3600000"),
        AtLeast(1), ReadOnly, NotYet;
    "Pause between two sweeps for expired delegation tokens.";
    "delegation.token.expiry.time.ms": Long => Some("86400000"), AtLeast(1), ReadOnly, NotYet;
    "Time after which a delegation token must have been renewed.";
    "delegation.token.max.lifetime.ms": Long => Some("604800000"), AtLeast(1), ReadOnly, NotYet;
    "Time after which a delegation token can no longer be renewed.";
    "delegation.token.secret.key": Password => None, Any, ReadOnly, Refused;
    "Key with which delegation tokens are signed.";
    "principal.builder.class": Class =>
        Some("org.apache.kafka.common.security.authenticator.\
            DefaultKafkaPrincipalBuilder"),
        Any, PerBroker, Refused;
    "Java class that names the client behind a connection.";
    "sasl.client.callback.handler.class": Class => None, Any, ReadOnly, NotYet;
    "Java class that answers a SASL client's questions.";
    "sasl.enabled.mechanisms": List => Some("GSSAPI"), Any, PerBroker, NotYet;
    "SASL mechanisms that clients may use.";
    "sasl.jaas.config": Password => None, Any, PerBroker, NotYet;
    "Login of the broker for SASL.";
    "sasl.kerberos.kinit.cmd": String => Some("/usr/bin/kinit"), Any, PerBroker, NotYet;
    "Path of the kinit command.";
    "sasl.kerberos.min.time.before.relogin": Long => Some("60000"), Any, PerBroker, NotYet;
    "Least time between two Kerberos logins.";
    "sasl.kerberos.principal.to.local.rules": List => Some("DEFAULT"), Any, PerBroker, NotYet;
    "Rules that turn Kerberos principals into short names.";
    "sasl.kerberos.service.name": String => None, Any, PerBroker, NotYet;
    "Kerberos principal that brokers run as.";
    "sasl.kerberos.ticket.renew.jitter": Double => Some("0.05"), Any, PerBroker, NotYet;
    "Spread of the time at which a ticket is renewed.";
    "sasl.kerberos.ticket.renew.window.factor": Double => Some("0.8"), Any, PerBroker, NotYet;
    "Share of a ticket's life after which it is renewed.";
    "sasl.login.callback.handler.class": Class => None, Any, ReadOnly, NotYet;
    "Java class that answers the login's questions.";
    "sasl.login.class": Class => None, Any, ReadOnly, NotYet;
    "Java class of the login.";
    "sasl.login.connect.timeout.ms": Int => None, Any, ReadOnly, NotYet;
    "Time that connecting to an identity provider may take.";
    "sasl.login.read.timeout.ms": Int => None, Any, ReadOnly, NotYet;
    "Time that an identity provider's answer may take.";
    "sasl.login.refresh.buffer.seconds": Short => Some("300"), Any, PerBroker, NotYet;
    "Time before its end at which a credential is renewed at the latest.";
    "sasl.login.refresh.min.period.seconds": Short => Some("60"), Any, PerBroker, NotYet;
    "Least time between two renewals of a credential.";
    "sasl.login.refresh.window.factor": Double => Some("0.8"), Any, PerBroker, NotYet;
    "Share of a credential's life after which it is renewed.";
    "sasl.login.refresh.window.jitter": Double => Some("0.05"), Any, PerBroker, NotYet;
    "Spread of the time at which a credential is renewed.";
    "sasl.login.retry.backoff.max.ms": Long => Some("10000"), Any, ReadOnly, NotYet;
    "Longest pause between logins at an identity provider.";
    "sasl.login.retry.backoff.ms": Long => Some("100"), Any, ReadOnly, NotYet;
    "First pause between logins at an identity provider.";
    "sasl.mechanism.controller.protocol": String => Some("GSSAPI"), Any, ReadOnly, NotYet;
    "SASL mechanism between brokers and controllers.";
    "sasl.mechanism.inter.broker.protocol": String => Some("GSSAPI"), Any, PerBroker, NotYet;
    "SASL mechanism between brokers.";
    "sasl.oauthbearer.allow.unverified.audience": Boolean => Some("false"), Any, ReadOnly, NotYet;
    "Whether tokens pass without a check of their audience.";
    "sasl.oauthbearer.allow.unverified.issuer": Boolean => Some("false"), Any, ReadOnly, NotYet;
    "Whether tokens pass without a check of their issuer.";
    "sasl.oauthbearer.assertion.algorithm": String => Some("RS256"),
        OneOfAnyCase(&["ES256", "RS256"]), ReadOnly, NotYet;
    "Algorithm that signs assertions.";
    "sasl.oauthbearer.assertion.claim.aud": String => None, Any, ReadOnly, NotYet;
    "Audience of assertions.";
    "sasl.oauthbearer.assertion.claim.exp.seconds": Int => Some("300"),
        Between(0, 86400), ReadOnly, NotYet;
    "Life of assertions.";
    "sasl.oauthbearer.assertion.claim.iss": String => None, Any, ReadOnly, NotYet;
    "Issuer of assertions.";
    "sasl.oauthbearer.assertion.claim.jti.include": Boolean => Some("false"), Any, ReadOnly, NotYet;
    "Whether assertions carry an id of their own.";
    "sasl.oauthbearer.assertion.claim.nbf.seconds": Int => Some("60"),
        Between(0, 3600), ReadOnly, NotYet;
    "How far back the validity of assertions begins.";
    "sasl.oauthbearer.assertion.claim.sub": String => None, Any, ReadOnly, NotYet;
    "Subject of assertions.";
    "sasl.oauthbearer.assertion.file": String => None, Any, ReadOnly, NotYet;
    "File with a ready assertion.";
    "sasl.oauthbearer.assertion.private.key.file": String => None, Any, ReadOnly, NotYet;
    "File with the key that signs assertions.";
    "sasl.oauthbearer.assertion.private.key.passphrase": Password => None, Any, ReadOnly, NotYet;
    "Passphrase of the key that signs assertions.";
    "sasl.oauthbearer.assertion.template.file": String => None, Any, ReadOnly, NotYet;
    "File with further headers and claims of assertions.";
    "sasl.oauthbearer.client.credentials.client.id": String => None, Any, ReadOnly, NotYet;
    "Client id at the identity provider.";
    "sasl.oauthbearer.client.credentials.client.secret": Password => None, Any, ReadOnly, NotYet;
    "Client secret at the identity provider.";
    "sasl.oauthbearer.clock.skew.seconds": Int => Some("30"), Any, ReadOnly, NotYet;
    "Difference of clocks that a token's times may show.";
    "sasl.oauthbearer.expected.audience": List => Some(""), Any, ReadOnly, NotYet;
    "Audiences of which a token must name one.";
    "sasl.oauthbearer.expected.issuer": String => None, Any, ReadOnly, NotYet;
    "Issuer that a token must name.";
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": Long => Some("3600000"), Any, ReadOnly, NotYet;
    "Pause between two readings of the provider's keys.";
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": Long => Some("10000"),
        Any, ReadOnly, NotYet;
    "Longest pause between tries to read the provider's keys.";
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": Long => Some("100"), Any, ReadOnly, NotYet;
    "First pause between tries to read the provider's keys.";
    "sasl.oauthbearer.jwks.endpoint.url": String => None, Any, ReadOnly, NotYet;
    "Address of the provider's keys.";
    "sasl.oauthbearer.jwt.retriever.class": Class =>
        Some("org.apache.kafka.common.security.oauthbearer.\
            DefaultJwtRetriever"),
        Any, ReadOnly, NotYet;
    "Java class that fetches tokens.";
    "sasl.oauthbearer.jwt.validator.class": Class =>
        Some("org.apache.kafka.common.security.oauthbearer.\
            DefaultJwtValidator"),
        Any, ReadOnly, NotYet;
    "Java class that checks tokens.";
    "sasl.oauthbearer.scope": String => None, Any, ReadOnly, NotYet;
    "Scope that is asked of the provider.";
    "sasl.oauthbearer.scope.claim.name": String => Some("scope"), Any, ReadOnly, NotYet;
    "Claim that holds a token's scope.";
    "sasl.oauthbearer.sub.claim.name": String => Some("sub"), Any, ReadOnly, NotYet;
    "Claim that holds a token's subject.";
    "sasl.oauthbearer.token.endpoint.url": String => None, Any, ReadOnly, NotYet;
    "Address at which the provider gives tokens.";
    "sasl.server.callback.handler.class": Class => None, Any, ReadOnly, NotYet;
    "Java class that answers a SASL server's questions.";
    "sasl.server.max.receive.size": Int => Some("524288"), Any, ReadOnly, NotYet;
    "Largest message before a client has authenticated.";
    "security.inter.broker.protocol": String => Some("PLAINTEXT"),
        OneOf(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]), ReadOnly, Effective;
    "Security protocol between brokers; PLAINTEXT is served.";
    "security.providers": String => None, Any, ReadOnly, Refused;
    "Java classes that provide security algorithms.";
    "ssl.allow.dn.changes": Boolean => Some("false"), Any, ReadOnly, NotYet;
    "Whether a new certificate may name another subject.";
    "ssl.allow.san.changes": Boolean => Some("false"), Any, ReadOnly, NotYet;
    "Whether a new certificate may lack former alternative names.";
    "ssl.cipher.suites": List => Some(""), Any, PerBroker, NotYet;
    "Cipher suites that TLS may use; all when empty.";
    "ssl.client.auth": String => Some("none"),
        OneOf(&["required", "requested", "none"]), PerBroker, NotYet;
    "Whether TLS clients must show a certificate.";
    "ssl.enabled.protocols": List => Some("TLSv1.2,TLSv1.3"), Any, PerBroker, NotYet;
    "Versions of TLS that are accepted.";
    "ssl.endpoint.identification.algorithm": String => Some("https"), Any, PerBroker, NotYet;
    "How a peer's host name is checked against its certificate.";
    "ssl.engine.factory.class": Class => None, Any, PerBroker, NotYet;
    "Java class that makes TLS engines.";
    "ssl.key.password": Password => None, Any, PerBroker, NotYet;
    "Password of the private key.";
    "ssl.keymanager.algorithm": String => Some("SunX509"), Any, PerBroker, NotYet;
    "Java algorithm of the key manager.";
    "ssl.keystore.certificate.chain": Password => None, Any, PerBroker, NotYet;
    "Certificate chain in PEM.";
    "ssl.keystore.key": Password => None, Any, PerBroker, NotYet;
    "Private key in PEM.";
    "ssl.keystore.location": String => None, Any, PerBroker, NotYet;
    "File of the key store.";
    "ssl.keystore.password": Password => None, Any, PerBroker, NotYet;
    "Password of the key store.";
    "ssl.keystore.type": String => Some("JKS"), Any, PerBroker, NotYet;
    "Format of the key store.";
    "ssl.principal.mapping.rules": String => Some("DEFAULT"), Any, ReadOnly, NotYet;
    "Rules that turn a certificate's subject into a short name.";
    "ssl.protocol": String => Some("TLSv1.3"), Any, PerBroker, NotYet;
    "Version of TLS that is preferred.";
    "ssl.provider": String => None, Any, PerBroker, NotYet;
    "Java provider of TLS.";
    "ssl.secure.random.implementation": String => None, Any, PerBroker, NotYet;
    "Java source of random numbers for TLS.";
    "ssl.trustmanager.algorithm": String => Some("PKIX"), Any, PerBroker, NotYet;
    "Java algorithm of the trust manager.";
    "ssl.truststore.certificates": Password => None, Any, PerBroker, NotYet;
    "Trusted certificates in PEM.";
    "ssl.truststore.location": String => None, Any, PerBroker, NotYet;
    "File of the trust store.";
    "ssl.truststore.password": Password => None, Any, PerBroker, NotYet;
    "Password of the trust store.";
    "ssl.truststore.type": String => Some("JKS"), Any, PerBroker, NotYet;
    "Format of the trust store.";
}
