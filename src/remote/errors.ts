import { DeclarationError } from '../keys/apply/declaration.ts';
import { type ErrorCode, KeysError, NameTakenError } from '../keys/errors.ts';

/** What an error of an answer says, as far as it is known. */
export interface AnsweredError {
  message: string;
  extensions?: {
    code?: unknown;
    reason?: unknown;
    replaceable?: unknown;
    requestId?: unknown;
    problems?: unknown;
  };
}

/** Codes of the rules: they mean the same wherever the rules run. */
const RULES: readonly ErrorCode[] = [
  'NAME_INVALID',
  'DESCRIPTION_INVALID',
  'ROLE_INVALID',
  'PERMISSION_INVALID',
  'NO_GRANTS',
  'EXPIRY_INVALID',
  'LIMIT_INVALID',
  'NETWORK_INVALID',
  'INPUT_INVALID',
  'DECLARATION_INVALID',
  'NAME_TAKEN',
  'NAME_CONFUSABLE',
  'NOT_FOUND',
  'FORBIDDEN',
  'ROTATION_IN_PROGRESS',
  'ROTATION_NONE',
  'PRUNE_REFUSED',
  'TAKEOVER_REFUSED',
  'CHAIN_TOO_LONG',
  'POLICY_VIOLATED',
  'REQUEST_DECIDED',
  'CONSENT_OFF',
  'TOO_MANY_REQUESTS',
  'STORE_READONLY',
];

/** Codes of a server that does not know what it is asked for. */
const MISFITS = new Set<unknown>(['GRAPHQL_VALIDATION_FAILED', 'GRAPHQL_PARSE_FAILED', 'BAD_REQUEST']);

/** The error of the rules, or of the server, that an answer has. */
export function errorOf({ message, extensions = {} }: AnsweredError, server: string): KeysError {
  const { code, reason, replaceable, requestId } = extensions;
  const text = typeof reason === 'string' ? reason : message;
  if (code === 'NAME_TAKEN') return nameTaken(text, replaceable === true);
  const issues = code === 'DECLARATION_INVALID' ? issuesIn(extensions.problems) : [];
  if (issues.length > 0) return new DeclarationError(issues);
  const known = RULES.find((each) => each === code);
  if (known) return new KeysError(known, text);
  if (MISFITS.has(code))
    return incompatible(server, `does not know what this command asks for, and is probably older: ${message}`);
  const id = typeof requestId === 'string' ? ` Its request id is ${requestId}.` : '';
  return new KeysError('SERVER_FAILED', `The server ${server} failed: ${message}${id}`);
}

/** The error for an answer that is not that of a server of ours. @param what goes on after "The server" */
export function incompatible(server: string, what: string, cause?: unknown): KeysError {
  return new KeysError('SERVER_INCOMPATIBLE', `The server ${server} ${what}`, { cause });
}

function nameTaken(message: string, isReplaceable: boolean): KeysError {
  const error = new NameTakenError('', isReplaceable);
  error.message = message;
  return error;
}

function issuesIn(problems: unknown): { path: (string | number)[]; message: string }[] {
  if (!Array.isArray(problems)) return [];
  return (problems as { path?: unknown; message?: unknown }[]).flatMap(({ path, message }) =>
    Array.isArray(path) && typeof message === 'string' ? [{ path: path as (string | number)[], message }] : [],
  );
}
