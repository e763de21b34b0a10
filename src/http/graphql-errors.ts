import { randomUUID } from 'node:crypto';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { isKeysError, type KeysError, type NameTakenError } from '../keys/errors.ts';
import { redactSecrets } from '../keys/secret/secret.ts';
import type { Log } from '../log.ts';

/**
 * How graphql-js says that a resolver's result does not fit its type: with the value in the text, and by the class of the
 * errors that are meant for the client.
 */
const RESULT_MISFIT =
  /^(?:(?:Int|Float|String|Boolean|ID|Enum "\w+") cannot represent |Expected Iterable, |Expected value of type "|Abstract type "|Runtime Object type ")/;

/**
 * The form in which an error reaches the client. Those that were meant for it keep their text; of all others it learns a
 * request id, under which the log has the rest.
 */
export function formatGraphQLError(error: GraphQLError, log: Log): GraphQLFormattedError {
  const { locations, path } = error.toJSON();
  const { message, extensions } = explain(error, log);
  return { message: redactSecrets(message), ...(locations && { locations }), ...(path && { path }), extensions };
}

function explain(error: GraphQLError, log: Log): { message: string; extensions: Record<string, unknown> } {
  const cause = error.originalError;
  if (!cause) return { message: error.message, extensions: { code: defaultCodeOf(error), ...error.extensions } };
  if (isKeysError(cause) && !cause.code.startsWith('STORE_')) return explainKeysError(cause);
  if (cause.name === 'GraphQLError' && !isResultMisfit(error))
    return { message: error.message, extensions: { code: defaultCodeOf(error), ...error.extensions } };
  const requestId = randomUUID();
  log.error({ err: cause, requestId, path: error.path }, 'a field failed');
  if (isKeysError(cause)) {
    return {
      message: 'The key store does not answer at the moment. Try again later.',
      extensions: { code: 'SERVICE_UNAVAILABLE', requestId },
    };
  }
  return { message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR', requestId } };
}

function isResultMisfit({ path, message, extensions }: GraphQLError): boolean {
  return path !== undefined && extensions['code'] === undefined && RESULT_MISFIT.test(message);
}

/** What to do about an error, in terms of the schema. */
function remedyOf(error: KeysError): string {
  if (error.code === 'ROTATION_IN_PROGRESS')
    return ' End one of them first, by finishApiKeyRotation or rollBackApiKeyRotation.';
  if (error.code !== 'NAME_TAKEN') return '';
  return (error as NameTakenError).replaceable
    ? ' Set overwrite to replace it, or choose another name.'
    : ' Choose another name.';
}

function explainKeysError(error: KeysError): { message: string; extensions: Record<string, unknown> } {
  const remedy = remedyOf(error);
  const missing = 'missing' in error ? { missing: error.missing } : {};
  return { message: error.message + remedy, extensions: { code: error.code, ...missing } };
}

/** The code of an error that brings none: before execution it is about the document or the variables, later about a field. */
function defaultCodeOf(error: GraphQLError): string {
  if (error.path) return 'BAD_REQUEST';
  return error.message.startsWith('Syntax Error') ? 'GRAPHQL_PARSE_FAILED' : 'GRAPHQL_VALIDATION_FAILED';
}
