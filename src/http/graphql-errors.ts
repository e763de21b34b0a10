import { randomUUID } from 'node:crypto';
import { type ExecutionResult, GraphQLError, type GraphQLFormattedError } from 'graphql';
import { forbidden, type Principal, uses } from '../keys/authorization/index.ts';
import { type DocumentIssue, isKeysError, type Issue, type KeysError, remedyIn } from '../keys/basics/index.ts';
import { redactSecrets } from '../keys/secret/index.ts';
import type { Log } from '../log.ts';

/** How many characters are shown of the start of a long message, and of its end. */
const SHOWN_PART = 500;

/**
 * The messages of graphql-js for a resolver's result that does not fit its type. They contain the value, and have the
 * same class as errors meant for the client.
 */
const RESULT_MISMATCHES: readonly RegExp[] = [
  /^(?:Int|Float|String|Boolean|ID|Enum "\w+") cannot represent /,
  /^Expected Iterable, /,
  /^Expected value of type "/,
  /^Abstract type "/,
  /^Runtime Object type "/,
];

/** The errors of a result in the order of its fields and items, whichever failed first. */
export function errorsInOrder({ data, errors = [] }: ExecutionResult): GraphQLError[] {
  return errors.toSorted(({ path: one = [] }, { path: other = [] }) => {
    let parent: unknown = data;
    for (const [index, step] of one.entries()) {
      const otherStep = other[index];
      if (typeof parent !== 'object' || parent === null || otherStep === undefined) return 0;
      if (typeof step === 'number' && step !== otherStep) return step - Number(otherStep);
      if (step !== otherStep) {
        const steps = Object.keys(parent);
        return steps.indexOf(String(step)) - steps.indexOf(String(otherStep));
      }
      parent = (parent as Record<string, unknown>)[step];
    }
    return 0;
  });
}

/** The most bytes of errors in the answer to a document that was not executed, and of locations in one of them. */
const MAX_ERROR_BYTES = 7500;
const MAX_LOCATIONS = 10;

/** The first errors of a document that was not executed, and the number of further ones, in less than 8 KB. */
export function firstErrors(errors: readonly GraphQLFormattedError[]): GraphQLFormattedError[] {
  const shown: GraphQLFormattedError[] = [];
  let bytes = 0;
  for (const error of errors) {
    const { locations = [], ...rest } = error;
    const cut = locations.length > MAX_LOCATIONS ? { ...rest, locations: locations.slice(0, MAX_LOCATIONS) } : error;
    bytes += Buffer.byteLength(JSON.stringify(cut));
    if (shown.length > 0 && bytes > MAX_ERROR_BYTES) break;
    shown.push(cut);
  }
  const more = errors.length - shown.length;
  if (more === 0) return shown;
  const code = errors[0]!.extensions?.['code'];
  return [...shown, { message: `There are ${more} more errors.`, extensions: { code } }];
}

/** The log for details of failures, and the id of the request; without one, each failure gets its own. */
interface FailingRequest {
  log: Log;
  requestId: string | undefined;
}

/**
 * Formats an error for the client. Errors meant for the client keep their message; all others get a request id, under
 * which the log has the details.
 */
export function formatGraphQLError(error: GraphQLError, failing: FailingRequest): GraphQLFormattedError {
  const { locations, path } = error.toJSON();
  const { message, extensions } = explain(error, failing);
  return { message: redactSecrets(message), ...(locations && { locations }), ...(path && { path }), extensions };
}

function explain(
  error: GraphQLError,
  failing: FailingRequest,
): { message: string; extensions: Record<string, unknown> } {
  const cause = error.originalError;
  if (!cause) return { message: messageOf(error), extensions: { code: defaultCodeOf(error), ...error.extensions } };
  if (isKeysError(cause) && !cause.code.startsWith('STORE_')) {
    if (cause.code === 'FEATURE_FAILED')
      failing.log.error({ err: cause, requestId: failing.requestId, path: error.path }, 'a step of a plugin failed');
    return explainKeysError(cause);
  }
  if (cause.name === 'GraphQLError' && !isResultMismatch(error))
    return { message: messageOf(error), extensions: { code: defaultCodeOf(error), ...error.extensions } };
  const { log, requestId = randomUUID() } = failing;
  log.error({ err: cause, requestId, path: error.path }, 'a field failed');
  if (isKeysError(cause) && cause.code === 'STORE_READONLY') {
    return {
      message:
        'This server cannot write to the key store. Change keys from the command line, or through another server.',
      extensions: { code: 'STORE_READONLY', requestId },
    };
  }
  if (isKeysError(cause)) {
    return {
      message: 'The key store does not answer at the moment. Try again later.',
      extensions: { code: 'SERVICE_UNAVAILABLE', requestId },
    };
  }
  return { message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR', requestId } };
}

function isResultMismatch({ path, message, extensions }: GraphQLError): boolean {
  if (path === undefined || extensions['code'] !== undefined) return false;
  return RESULT_MISMATCHES.some((pattern) => pattern.test(message));
}

function explainKeysError(error: KeysError): { message: string; extensions: Record<string, unknown> } {
  const remedy = remedyIn('schema', error);
  const missing = 'missing' in error ? { missing: error.missing } : {};
  // For clients that have a remedy in terms of their own.
  const reason = remedy === undefined ? {} : { reason: redactSecrets(error.message) };
  const replaceable = 'replaceable' in error ? { replaceable: error.replaceable } : {};
  const extensions = { code: error.code, ...reason, ...replaceable, ...missing, ...problemsOf(error) };
  return { message: remedy === undefined ? error.message : `${error.message} ${remedy}`, extensions };
}

/** All issues of an input, each with its path; an empty path means the whole input. */
function problemsOf(error: KeysError): { problems?: object[] } {
  if (!('issues' in error)) return {};
  const issues = error.issues as readonly (Issue | DocumentIssue)[];
  return {
    problems: issues.map((issue) => ({
      code: 'code' in issue ? issue.code : error.code,
      message: redactSecrets(issue.message),
      path: 'path' in issue ? issue.path : issue.field === undefined ? [] : [issue.field],
    })),
  };
}

/**
 * The message of an error of graphql-js. Messages about a variable contain its whole value, followed by the problem.
 */
function messageOf(error: GraphQLError): string {
  const message = redactSecrets(error.message);
  if (message.length <= 2 * SHOWN_PART) return message;
  return `${message.slice(0, SHOWN_PART)}…${message.slice(-SHOWN_PART)}`;
}

/** The code of an error without one: without a path it is about the document, otherwise about a field. */
function defaultCodeOf(error: GraphQLError): string {
  if (error.path) return 'BAD_REQUEST';
  return error.message.startsWith('Syntax Error') ? 'GRAPHQL_PARSE_FAILED' : 'GRAPHQL_VALIDATION_FAILED';
}

/** The keys that can read the schema: all, none, or those with PERMISSION:READ_ANY. */
export type IntrospectionMode = 'on' | 'off' | 'permitted';

/**
 * Refuses a request for the schema. If it is allowed by a permission, that counts as used.
 * @throws GraphQLError INTROSPECTION_OFF; FORBIDDEN if the key lacks the permission
 */
export function checkIntrospection(mode: IntrospectionMode, principal: Principal): void {
  if (mode === 'on') return;
  if (mode === 'off') {
    const message = 'Introspection is off: this server does not answer __schema and __type.';
    throw new GraphQLError(message, { extensions: { code: 'INTROSPECTION_OFF' } });
  }
  if (uses(principal, 'PERMISSION', 'READ_ANY')) return;
  const error = forbidden(principal, ['PERMISSION:READ_ANY'], 'to ask for the schema, ');
  throw new GraphQLError(error.message, { originalError: error });
}

/** True if a key is allowed to learn the contents of the schema. */
export function mayKnowSchema(mode: IntrospectionMode, { access }: Principal): boolean {
  return mode === 'on' || (mode === 'permitted' && access.has('PERMISSION', 'READ_ANY'));
}

/** Removes the suggestion for a misspelled name from an error, as it reveals the schema. */
export function withoutSuggestion(message: string): string {
  const start = message.indexOf(' Did you mean ');
  return start === -1 ? message : message.slice(0, start);
}
