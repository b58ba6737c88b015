//! DescribeUserScramCredentials (50), version 0: which users can authenticate by SCRAM (KIP-554).

use crate::base::error_code::ErrorCode;
use crate::wire::codec::message;

message! {
    /// Which users.
    pub struct DescribeUserScramCredentialsRequest(api_key 50, versions 0..=0, flexible 0) {
        /// Null or empty for all of them.
        users: Option<Vec<UserName>> => 0.., nullable 0.., default Some(Vec::new());
    }

    /// One user.
    pub struct UserName {
        name: String => 0..;
    }

    /// The users.
    pub struct DescribeUserScramCredentialsResponse(api_key 50, versions 0..=0, flexible 0) {
        throttle_time_ms: i32 => 0..;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0.., default Some(String::new());
        results: Vec<DescribeUserScramCredentialsResult> => 0..;
    }

    /// One user.
    pub struct DescribeUserScramCredentialsResult {
        user: String => 0..;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0.., default Some(String::new());
        credential_infos: Vec<CredentialInfo> => 0..;
    }

    /// One credential; the secret is not told.
    pub struct CredentialInfo {
        /// 1: SCRAM-SHA-256; 2: SCRAM-SHA-512.
        mechanism: i8 => 0..;
        iterations: i32 => 0..;
    }
}
