import { Readable } from 'node:stream';
import { constants, createZstdCompress, zstdCompressSync } from 'node:zlib';
import type { Context, Hono } from 'hono';
import { isKeysError } from '../../keys/basics/index.ts';
import {
  type Admitted,
  answering,
  badRequest,
  type BearerCheck,
  type BearerEnv,
  type CheckParts,
  type ClientAddresses,
  errorReply,
  honoHandler,
  HonoHead,
  jsonReply,
  readJson,
  type Reply,
  REPLY_HEADERS,
  requestIdIn,
  RequestRefused,
  type RouteContext,
  type ServedRequest,
  unavailable,
  withFields,
} from '../../http/index.ts';
import { answerLines, EDGE_FORMS, type EdgePoll, type Edges } from './edges.ts';
import { leaseToEdge } from './leases.ts';
import { Origin } from './origin.ts';
import { readEdgeReport } from './reports.ts';

interface FeedParts extends CheckParts {
  /** Accepts keys that have EDGE:READ_ANY. */
  readonly check: BearerCheck;
  readonly edges: Edges;
  readonly addresses: ClientAddresses;
  /** True if an edge must have shown a certificate when it connected. */
  readonly needsCertificate: boolean;
}

/** Type of the answers: a JSON value in each line, after a character with its kind. */
const TYPE = 'application/x-ndjson';
/** Shorter answers are not worth compressing, in characters. */
const COMPRESSED_FROM = 16 * 1024;
/** Fast rather than small. */
const ZSTD = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
const COMPRESSED = { 'Content-Encoding': 'zstd', Vary: 'Accept-Encoding' };
/** Maximum size of a report, in bytes. */
const MAX_REPORT_BYTES = 1024 * 1024;
const MAX_TEXT = 200;
const NO_CERTIFICATE =
  'The connection has no certificate that "tls.clientCa" of the server signs: give the edge one by --client-cert.';

/**
 * Adds the endpoints for servers without a store: the changes of keys, all keys, and reports of accepted requests. A
 * request for changes after a position confirms all up to there.
 * @param needsCertificate true if an edge must show a certificate when it connects
 */
export function addFeed(
  app: Hono<BearerEnv>,
  { bearer, ...context }: RouteContext,
  { needsCertificate }: Pick<FeedParts, 'needsCertificate'>,
): void {
  const { check, auth } = bearer('/feed', 'EDGE:READ_ANY');
  const { keys } = context;
  const origin = keys.feature(Origin);
  const { edges } = origin;
  const parts: FeedParts = { ...context, check, edges, needsCertificate };
  const answeringOnly = (method: 'GET' | 'POST', answer: (c: Context<BearerEnv>) => Promise<Reply | Response>) =>
    answering<BearerEnv>(
      async (c) => {
        checkRequest({ method: c.req.method, hasCertificate: new HonoHead(c).hasCertificate }, [method], parts);
        const answered = await answer(c);
        return (await c.get('checkAgain')()) ?? answered;
      },
      (error, c) => replyOf(error, requestIdIn(c), parts),
    );
  app.all(
    '/feed',
    honoHandler((request) => poll(request, parts)),
  );
  app.all(
    '/feed/snapshot',
    auth,
    answeringOnly('GET', async (c) => {
      const end = edges.beginLoading();
      if (!end) return busy('Other servers are loading all keys. Try again in a moment.');
      const body = Readable.from(edges.snapshot(), { objectMode: false, highWaterMark: COMPRESSED_FROM });
      body.once('close', end);
      const headers = { 'Content-Type': TYPE, ...REPLY_HEADERS };
      if (!takesZstd(c.req.header('accept-encoding')))
        return c.body(Readable.toWeb(body) as ReadableStream, 200, headers);
      const compressed = body.on('error', (error) => compressed.destroy(error)).pipe(createZstdCompress(ZSTD));
      compressed.on('close', () => body.destroy());
      const web = Readable.toWeb(compressed) as ReadableStream;
      return c.body(web, 200, { ...headers, ...COMPRESSED });
    }),
  );
  app.all(
    '/feed/activity',
    auth,
    answeringOnly('POST', async (c) => {
      const report = readEdgeReport(await readJson(c, 'Activity is reported', MAX_REPORT_BYTES));
      await origin.takeReport(report, c.get('principal').apiKey);
      return c.body(null, 204, REPLY_HEADERS);
    }),
  );
  app.all(
    '/feed/leases',
    auth,
    answeringOnly('POST', async (c) => {
      const requests = await readJson(c, 'Leases are requested', MAX_REPORT_BYTES);
      return jsonReply(await leaseToEdge(keys, requests, c.get('principal').apiKey.id));
    }),
  );
}

/** @throws RequestRefused */
function checkRequest(
  { method, hasCertificate }: Pick<ServedRequest, 'method' | 'hasCertificate'>,
  allowed: readonly ('GET' | 'POST' | 'DELETE')[],
  { needsCertificate }: FeedParts,
): void {
  if (!(allowed as readonly string[]).includes(method))
    throw new RequestRefused('METHOD_NOT_ALLOWED', `Use ${allowed.join(' or ')} for this address.`, {
      Allow: allowed.join(', '),
    });
  if (needsCertificate && !hasCertificate) throw new RequestRefused('FORBIDDEN', NO_CERTIFICATE);
}

function replyOf(error: unknown, requestId: string | undefined, { failures }: FeedParts): Reply {
  if (error instanceof RequestRefused) return errorReply(error.code, error.message, error.headers);
  if (isKeysError(error) && error.code === 'OPTION_INVALID') return errorReply('BAD_REQUEST', error.message);
  failures.add(error, requestId);
  return unavailable();
}

/** Must be cheap, because edges poll all the time. */
async function poll(request: ServedRequest, parts: FeedParts): Promise<Reply> {
  const { check, edges, addresses } = parts;
  const admission = await check.enter(request);
  if ('refusal' in admission) return admission.refusal;
  const gone = new AbortController();
  const endWatching = request.onClientGone(() => gone.abort());
  let reply: Reply;
  try {
    checkRequest(request, ['GET', 'DELETE'], parts);
    if (request.method === 'DELETE') return leave(request, admission, parts);
    const { restMs, ...read } = readPoll(request.search);
    const { stopping } = request;
    const asked = { ...read, key: keyOf(admission), address: addresses.of(request).address };
    const answer =
      restMs && stopping
        ? await edges.poll({ ...asked, restMs }, AbortSignal.any([gone.signal, stopping]))
        : await edges.poll(asked, gone.signal);
    if (answer === 'gone') reply = errorReply('FEED_GONE', 'This position is unknown. Load /feed/snapshot.');
    else if (answer === 'full') reply = busy('Too many servers follow this one. Use another one.');
    else reply = linesReply(answerLines(answer), request.header('accept-encoding'));
  } catch (error) {
    reply = replyOf(error, request.notes?.id, parts);
  } finally {
    endWatching();
  }
  const again = await check.again(request, admission);
  return 'refusal' in again ? again.refusal : withFields(reply, admission.fields);
}

/** Takes it that an edge lets no key pass any more. @throws RequestRefused */
function leave(request: ServedRequest, admission: Admitted, { edges }: FeedParts): Reply {
  const id = textIn(new URLSearchParams(request.search), 'edge', EDGE_FORMS.id);
  edges.leave({ id, key: keyOf(admission) });
  return jsonReply({});
}

function keyOf({ principal: { apiKey } }: Admitted): EdgePoll['key'] {
  return { id: apiKey.id, name: apiKey.name };
}

/** @throws RequestRefused */
function readPoll(search: string): Omit<EdgePoll, 'key' | 'address'> {
  const query = new URLSearchParams(search);
  const leaseMs = Number(textIn(query, 'lease', /^\d{1,6}$/));
  const { least, most } = EDGE_FORMS.leaseMs;
  if (leaseMs < least || leaseMs > most)
    throw badRequest(`"lease" is ${leaseMs}. It is from ${least} to ${most} milliseconds.`);
  const restMs = timeIn(query, 'rest');
  return {
    id: textIn(query, 'edge', EDGE_FORMS.id),
    name: textIn(query, 'name', EDGE_FORMS.name),
    after: textIn(query, 'after', /^[\w.:~-]+$/),
    leaseMs,
    holdMs: timeIn(query, 'hold'),
    restMs: restMs && Math.min(restMs, EDGE_FORMS.mostRestMs),
  };
}

function linesReply(text: string, encodings: string | undefined): Reply {
  const reply = { status: 200, type: TYPE, text };
  if (text.length < COMPRESSED_FROM || !takesZstd(encodings)) return reply;
  return { ...reply, bytes: new Uint8Array(zstdCompressSync(text, ZSTD)), headers: COMPRESSED };
}

/** A time in the URL, in milliseconds; undefined if it is not there. @throws RequestRefused */
function timeIn(query: URLSearchParams, name: string): number | undefined {
  return query.has(name) ? Number(textIn(query, name, /^\d{1,6}$/)) : undefined;
}

/** A parameter of the URL. @throws RequestRefused */
function textIn(query: URLSearchParams, name: string, form: RegExp): string {
  const values = query.getAll(name);
  const [value = ''] = values;
  if (values.length === 1 && value.length <= MAX_TEXT && form.test(value)) return value;
  throw badRequest(`The URL must have exactly one "${name}", in its form.`);
}

function busy(message: string): Reply {
  return errorReply('OVERLOADED', message, { 'Retry-After': '1' });
}

function takesZstd(encodings = ''): boolean {
  return /(?:^|,)\s*zstd\s*(?:,|$)/.test(encodings);
}
