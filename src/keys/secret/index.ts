/** The form of a secret, its digest, and where one may be found. */
export { type FoundSecret, SecretFinder } from './secret-finder.ts';
export {
  BEARER_ALONE,
  checkCredentialPlaces,
  createImportedId,
  createPersonId,
  createSecret,
  type CredentialPlace,
  digestSecret,
  hasOwnForm,
  toHex,
  holdsSecret,
  isImportedId,
  isPersonId,
  prefixOf,
  problemOfHeader,
  publicIdOfPrefix,
  type RandomBytes,
  readDigest,
  readSecret,
  redactSecrets,
  type Secret,
} from './secret.ts';
