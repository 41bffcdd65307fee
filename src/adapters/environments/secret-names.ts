/** Names of host variables that are never let through to a stage. */
export const secretName = /KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|COOKIE|SESSION|PRIVATE|BEARER|SIGNATURE|DSN|_PAT$|^PAT_/i;
