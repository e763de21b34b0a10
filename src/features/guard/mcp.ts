import type { IncomingMessage } from 'node:http';
import { errorReply, headerValues, parseJson, readBody, type Reply, RequestRefused } from '../../http/index.ts';
import { type Charge, ONCE, type Principal } from '../../keys/authorization/index.ts';
import { countFields, countJson, isRecord, printable, yieldToEventLoop } from '../../keys/basics/index.ts';
import type { Permission } from '../../keys/permissions/index.ts';
import { mostOfCharges, sumOfCharges } from '../routes/index.ts';
import { canonicalName } from './identity-headers.ts';
import { goesOn, type Holder } from './mcp-holders.ts';
import { MAX_PARTS, type McpRules, type Part } from './mcp-rules.ts';
import { isEncoded, pairsOf } from './passed-headers.ts';

/**
 * Decides which parts of an MCP server a key can use, for revisions of the Model Context Protocol up to 2026-07-28.
 * Messages are JSON-RPC 2.0 in the body of a POST; answers are JSON or an event stream.
 */

/** Maximum number of messages in a request. */
const MAX_MESSAGES = 100;
/** Maximum number of object fields and of values in a body, because reading each takes time. */
const [MAX_FIELDS, MAX_VALUES] = [20_000, 100_000];

export type Message = Readonly<Record<string, unknown>>;

/** A task that an earlier call of a tool has begun, by its id. */
interface Task {
  readonly kind: 'tasks';
  readonly name: string;
}

/**
 * The needs of a message: parts of the server and tasks, everything, something that no key gets, or nothing beyond the
 * connection itself.
 */
type Wanted = readonly (Part | Task)[] | 'everything' | 'nothing' | Invalid;

/** A message that names no part, with the reason. */
interface Invalid {
  readonly invalid: string;
  readonly kind?: (Part | Task)['kind'];
}

/** Methods allowed for everyone who can connect: they name no part, and their lists are filtered. */
const FOR_ALL: ReadonlySet<string> = new Set([
  'initialize',
  'logging/setLevel',
  'ping',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'server/discover',
  'tools/list',
]);

/** The parts that a message names. */
function wantedBy({ method, params = {} }: Message): Wanted {
  if (typeof method !== 'string') return { invalid: 'The method of a message is not a string.' };
  if (FOR_ALL.has(method) || method.startsWith('notifications/')) return [];
  const fields = isRecord(params) ? params : {};
  switch (method) {
    case 'tools/call':
      return partsOf('tools', [fields['name']]);
    case 'prompts/get':
      return partsOf('prompts', [fields['name']]);
    case 'resources/read':
    case 'resources/subscribe':
    case 'resources/unsubscribe':
      return partsOf('resources', [fields['uri']]);
    case 'completion/complete': {
      const ref = isRecord(fields['ref']) ? fields['ref'] : {};
      return ref['type'] === 'ref/prompt' ? partsOf('prompts', [ref['name']]) : partsOf('resources', [ref['uri']]);
    }
    case 'subscriptions/listen': {
      const { resourceSubscriptions = [], taskIds = [] } = isRecord(fields['notifications'])
        ? fields['notifications']
        : {};
      const resources = partsOf('resources', listOf(resourceSubscriptions));
      const tasks = partsOf('tasks', listOf(taskIds));
      return 'invalid' in tasks ? tasks : 'invalid' in resources ? resources : [...resources, ...tasks];
    }
    case 'tasks/cancel':
    case 'tasks/get':
    case 'tasks/result':
    case 'tasks/update':
      return partsOf('tasks', [fields['taskId']]);
    default:
      // A list of tasks shows those of all keys.
      return method.startsWith('tasks/') ? 'nothing' : 'everything';
  }
}

/** The tasks that messages name. */
export function tasksIn(messages: readonly Message[]): string[] {
  const wanted = messages.flatMap((message) => {
    const each = 'method' in message ? wantedBy(message) : [];
    return typeof each === 'object' && !('invalid' in each) ? each : [];
  });
  return [...new Set(wanted.flatMap(({ kind, name }) => (kind === 'tasks' ? [name] : [])))].slice(0, MAX_PARTS);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [undefined];
}

function partsOf<Kind extends (Part | Task)['kind']>(
  kind: Kind,
  names: readonly unknown[],
): readonly { kind: Kind; name: string }[] | Invalid {
  const texts = names.filter((name) => typeof name === 'string');
  return texts.length === names.length
    ? texts.map((name) => ({ kind, name }))
    : { kind, invalid: `The name of one of the ${kind} is not a string.` };
}

/** The messages of a request, as they are judged and passed on. */
export interface McpMessages {
  readonly messages: readonly Message[];
  /** Their bytes, as they arrived: no server can read them in another way. */
  readonly body: Buffer;
}

/** Error codes of refusals (JSON-RPC 2.0, section 5.1; MCP, revision 2026-07-28). */
const [PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS] = [-32_700, -32_600, -32_602];
const [SESSION_NOT_FOUND, FORBIDDEN, HEADER_MISMATCH] = [-32_001, -32_003, -32_020];

/** JSON in UTF-8: a server could read other encodings differently, and would see other messages. */
const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset=(?:utf-?8|"utf-?8")[ \t]*)?$/i;

/** The refusal of a body that cannot be judged. */
export class MessagesRefused extends RequestRefused {
  override readonly status: 400 | 415;
  readonly #code: number;

  constructor(status: MessagesRefused['status'], code: number, message: string) {
    super('BAD_REQUEST', message);
    this.status = status;
    this.#code = code;
  }

  get reply(): Reply {
    const { status, code, message } = this;
    return withError({ ...errorReply(code, message), status }, this.#code, message);
  }
}

/** A reply whose body is an error of JSON-RPC, to no request that could be told. */
function withError(reply: Reply, code: number, message: string): Reply {
  return { ...reply, text: JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } }) };
}

/**
 * Reads the messages of a POST.
 * @throws MessagesRefused; RequestRefused for a body that is too large, or cut off
 */
export async function readMessages(incoming: IncomingMessage): Promise<McpMessages> {
  const { rawHeaders } = incoming;
  if (isEncoded(rawHeaders))
    throw new MessagesRefused(415, INVALID_REQUEST, 'The body is compressed, which is not allowed here.');
  const types = headerValues(rawHeaders, 'content-type');
  if (types.length !== 1 || !JSON_TYPE.test(types[0]!))
    throw new MessagesRefused(415, INVALID_REQUEST, 'The body must be application/json, in UTF-8.');
  const bytes = await readBody(incoming);
  const text = decode(bytes);
  const { fields, values } = countJson(text);
  if (fields > MAX_FIELDS || values > MAX_VALUES)
    throw new MessagesRefused(
      400,
      INVALID_REQUEST,
      `The body has more than ${MAX_FIELDS} fields or ${MAX_VALUES} values. Send less at a time.`,
    );
  const value = parse(text);
  // Reading a large body takes a while, so let other requests run in between.
  await yieldToEventLoop();
  const messages = Array.isArray(value) ? value : [value];
  if (messages.length === 0 || messages.length > MAX_MESSAGES || !messages.every(isMessage))
    throw new MessagesRefused(
      400,
      INVALID_REQUEST,
      `The body is not JSON-RPC 2.0, of at most ${MAX_MESSAGES} messages.`,
    );
  if (countFields(value) !== fields)
    throw new MessagesRefused(400, INVALID_REQUEST, 'A field of the body is repeated.');
  const alias = messages.map(findAlias).find((name) => name !== undefined);
  if (alias !== undefined)
    throw new MessagesRefused(
      400,
      INVALID_REQUEST,
      `The field "${printable(alias)}" could be mistaken for another one.`,
    );
  requireSameHeaders(rawHeaders, messages);
  await yieldToEventLoop();
  return { messages, body: Buffer.from(bytes) };
}

/** Message fields that decisions use. */
const JUDGED: ReadonlySet<string> = new Set(
  'jsonrpc id method params name uri taskId ref type notifications resourceSubscriptions taskIds'.split(' '),
);
const JUDGED_WITHOUT_CASE: ReadonlySet<string> = new Set(Array.from(JUDGED, withoutCase));
/** A name that is longer is not taken for one of them: without its case, none is shorter. */
const MAX_JUDGED = Math.max(...Array.from(JUDGED, ({ length }) => length));

/** The same for names that some servers, such as those that use Go's `encoding/json`, take for one another. */
function withoutCase(name: string): string {
  return name.toLowerCase().toUpperCase();
}

/** Finds a field that a server could mistake for one of these. */
function findAlias({ params, ...message }: Message): string | undefined {
  const fields = isRecord(params) ? params : {};
  const { ref, notifications } = fields;
  const objects = [message, fields, isRecord(ref) ? ref : {}, isRecord(notifications) ? notifications : {}];
  return objects
    .flatMap((object) => Object.keys(object))
    .find((name) => !JUDGED.has(name) && name.length <= MAX_JUDGED && JUDGED_WITHOUT_CASE.has(withoutCase(name)));
}

function parse(text: string): unknown {
  try {
    return parseJson(text, 'The body');
  } catch (error) {
    throw error instanceof RequestRefused ? new MessagesRefused(400, PARSE_ERROR, error.message) : error;
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new MessagesRefused(400, PARSE_ERROR, 'The body is not valid UTF-8.');
  }
}

/** Keeps numbers as they are written, however many digits they have. */
export function exactNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === 'number' ? (JSON as unknown as RawJson).rawJSON(context!.source!) : value;
}

interface RawJson {
  rawJSON(text: string): unknown;
}

/** Checks for a request, a notification, or a client's answer to a request of the server. */
function isMessage(value: unknown): value is Message {
  if (!isRecord(value) || value['jsonrpc'] !== '2.0') return false;
  return 'method' in value || ('id' in value && ('result' in value || 'error' in value));
}

/** Prefix of headers that repeat an argument of a tool (revision 2026-07-28). */
const PARAM = 'mcp-param-';
/** Maximum number of MCP headers in a request, because each is compared with all arguments. */
const MAX_HEADERS = 50;

/** Refuses headers that contradict the message, because a server could use either (revision 2026-07-28). */
function requireSameHeaders(rawHeaders: readonly string[], messages: readonly Message[]): void {
  const said = new Map<string, string[]>();
  for (const [name, value] of pairsOf(rawHeaders)) {
    const header = canonicalName(name);
    if (header === 'mcp-method' || header === 'mcp-name' || header.startsWith(PARAM))
      said.set(header, [...(said.get(header) ?? []), value]);
  }
  if (said.size > MAX_HEADERS)
    throw new MessagesRefused(400, HEADER_MISMATCH, `The request has more than ${MAX_HEADERS} MCP headers.`);
  const [first] = messages;
  const params = isRecord(first?.['params']) ? first['params'] : {};
  const method = first?.['method'];
  const [, family = ''] = /^(resources|tasks)\//.exec(String(method)) ?? [];
  const named = params[{ resources: 'uri', tasks: 'taskId' }[family] ?? 'name'];
  let given: readonly Argument[] | undefined;
  for (const [header, values] of said) {
    const [value, ...others] = values.map(decodeHeader);
    const isSame =
      header === 'mcp-method'
        ? value === method
        : header === 'mcp-name'
          ? value === named
          : method === 'tools/call' && isArgument(header, value, (given ??= argumentsIn(params['arguments'])));
    if (!isSame || value === undefined || others.length > 0 || messages.length > 1)
      throw new MessagesRefused(400, HEADER_MISMATCH, `The header ${header} contradicts the body.`);
  }
}

/** An argument of a tool that is a text, a number or a boolean, with its name in lower case and without signs. */
type Argument = readonly [name: string, value: string | number | boolean];

function argumentsIn(value: unknown, name = ''): Argument[] {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return [[name, value]];
  if (Array.isArray(value) || !isRecord(value)) return [];
  return Object.entries(value).flatMap(([field, each]) => argumentsIn(each, withoutSigns(field)));
}

/**
 * Checks whether a header matches an argument. Only the schema of the tool says which one, so compare with the argument
 * of that name if there is one, otherwise with all.
 */
function isArgument(header: string, value: string | undefined, given: readonly Argument[]): boolean {
  const name = withoutSigns(header.slice(PARAM.length));
  const named = given.filter(([each]) => each === name);
  return (named.length > 0 ? named : given).some(([, argument]) =>
    typeof argument === 'number'
      ? value !== undefined && /^-?\d+(?:\.\d+)?$/.test(value) && Number(value) === argument
      : value === String(argument),
  );
}

function withoutSigns(name: string): string {
  return name.toLowerCase().replaceAll(/[^\p{L}\d]/gu, '');
}

/** Decodes a header value (non-ASCII text is base64); undefined if servers could read it in two ways. */
function decodeHeader(value: string): string | undefined {
  const base64 = /^=\?base64\?(.*)\?=$/i.exec(value)?.[1];
  if (base64 === undefined) return value;
  const text = Buffer.from(base64, 'base64').toString();
  return Buffer.from(text).toString('base64') === base64 ? text : undefined;
}

/** Messages that the key does not allow. */
export interface RefusedMessages {
  readonly reply: Reply;
  readonly missing: readonly Permission[];
  /** The refused part, for logs. */
  readonly detail: string;
  /** The tool that was called; undefined if none was. */
  readonly tool?: string | undefined;
}

/** Effects of allowed messages. */
interface AllowedMessages {
  readonly used: ReadonlySet<Permission>;
  readonly tools: ReadonlySet<string>;
  readonly charge: Charge;
}

/** The subject of a decision, with the facts about it. */
interface AskedMessages extends Pick<McpMessages, 'messages'> {
  readonly rules: McpRules;
  /** The keys that began the named tasks. */
  readonly tasks: ReadonlyMap<string, Holder>;
}

/**
 * Decides about messages, which pass all together or not at all.
 * @param challenge the reply for missing permissions, which are in its headers
 * @returns the permissions they use, the tools they call, and their charge: one for each that asks for something; or
 * the refusal
 */
export function judgeMessages(
  { rules, messages, tasks }: AskedMessages,
  principal: Principal,
  challenge: (missing: readonly Permission[]) => Reply,
): RefusedMessages | AllowedMessages {
  const { access } = principal;
  const used = new Set<Permission>();
  const tools = new Set<string>();
  const charges: Charge[] = [];
  const asked = messages
    .filter((message) => 'method' in message)
    .map((message) => ({ message, wanted: wantedBy(message) }));
  const tooMuch = rules.tooMuch(
    asked.flatMap(({ wanted }) => (typeof wanted === 'object' && !('invalid' in wanted) ? wanted : [])),
  );
  if (tooMuch !== undefined) return refusedAsInvalid(messages, tooMuch, 'too many parts');
  const maySkip = rules.allowsAll(access);
  for (const { message, wanted } of asked) {
    const method = typeof message['method'] === 'string' ? printable(message['method'], 100) : 'A message';
    // Let the server explain an invalid message, since it knows more.
    const isTheirs = typeof wanted === 'object' && 'invalid' in wanted && wanted.kind !== 'tasks';
    if (maySkip && (wanted === 'everything' || isTheirs)) {
      charges.push(ONCE);
      continue;
    }
    const refusedFor = (message: string, detail: string, missing: readonly Permission[] = []) =>
      refused(messages, { reply: challenge(missing), code: FORBIDDEN, message, missing, detail });
    if (wanted === 'everything') return refusedFor(`${method} needs all tools, resources and prompts.`, method);
    if (wanted === 'nothing') return refusedFor(`${method} is not allowed for any key.`, method);
    if ('invalid' in wanted) return refusedAsInvalid(messages, wanted.invalid, method);
    const ofParts: Charge[] = [];
    for (const { kind, name } of wanted) {
      const holder = kind === 'tasks' ? tasks.get(name) : undefined;
      if (kind === 'tasks' && !(holder?.tool !== undefined && goesOn(holder, principal)))
        return refusedFor(`${method}: this key has not started a task with this id.`, `${method} of another task`);
      const part: Part = kind === 'tasks' ? { kind: 'tools', name: holder!.tool! } : { kind, name };
      const lacking = rules.lacking(part, access);
      if (lacking && 'used' in lacking) {
        for (const permission of lacking.used) used.add(permission);
        // The call has counted that began a task.
        if (kind === 'tasks') continue;
        ofParts.push(...lacking.charges);
        if (kind === 'tools') tools.add(printable(name, 100));
        continue;
      }
      const detail = `${method} ${printable(part.name, 100)}`;
      const missing = lacking?.missing ?? [];
      const text =
        missing.length > 0 ? `${detail} needs ${missing.join(', ')}.` : `${detail} is not allowed for any key.`;
      const tool = part.kind === 'tools' ? printable(part.name, 100) : undefined;
      return { ...refusedFor(text, detail, missing), tool };
    }
    if (ofParts.length > 0) charges.push(mostOfCharges(ofParts));
  }
  return { used, tools, charge: sumOfCharges(charges) };
}

/** The answer to messages that cannot be judged. */
function refusedAsInvalid(messages: readonly Message[], message: string, detail: string): RefusedMessages {
  const reply = errorReply('BAD_REQUEST', message);
  return refused(messages, { reply, code: INVALID_PARAMS, message, missing: [], detail });
}

interface Refusing {
  readonly reply: Reply;
  readonly code: number;
  readonly message: string;
  readonly missing: readonly Permission[];
  readonly detail: string;
}

/** The answers to all requests of a batch with a refused message. */
function refused(messages: readonly Message[], { reply, code, message, missing, detail }: Refusing): RefusedMessages {
  const data = missing.length > 0 ? { scope: missing.join(' ') } : undefined;
  const errors = messages
    .filter((each) => 'method' in each)
    .map(({ id = null }) => ({ jsonrpc: '2.0', id, error: { code, message, ...(data && { data }) } }));
  const text = JSON.stringify(messages.length === 1 ? errors[0] : errors);
  return { reply: { ...reply, text }, missing, detail };
}

/** Header with the id of a session. */
export const SESSION = 'mcp-session-id';

/** The session that a request goes on with; undefined for none. @throws MessagesRefused for several */
export function sessionIn(rawHeaders: readonly string[]): string | undefined {
  const [session, ...others] = pairsOf(rawHeaders).flatMap(([name, value]) =>
    canonicalName(name) === SESSION ? [value] : [],
  );
  if (others.length > 0) throw new MessagesRefused(400, HEADER_MISMATCH, `The request has several ${SESSION} headers.`);
  return session;
}

/** The reply to a request in a session of another key, or an unknown session: its client starts a new one. */
export function sessionNotFound(): Reply {
  const text = 'This key has not started a session with this id. Start a new one.';
  return withError(errorReply('NOT_FOUND', text), SESSION_NOT_FOUND, text);
}

/** The reply to a request that is not MCP. */
export function notMcp(message: string): Reply {
  return withError(errorReply('FORBIDDEN', message), INVALID_REQUEST, message);
}
