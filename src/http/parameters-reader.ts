import { isUtf8 } from 'node:buffer';
import { LRUCache } from 'lru-cache';
import { type GraphQLParameters, parseGraphQLRequest } from './graphql-request.ts';

const MAX_ENTRIES = 1000;
const MAX_BODY_BYTES = 1024;

/** Parses the bodies of GraphQL requests. Caches short ones without variables, which tend to be repeated. */
export class ParametersReader {
  readonly #cache = new LRUCache<string, GraphQLParameters>({ max: MAX_ENTRIES });

  /** The parameters in a body; undefined if it is invalid. */
  read(body: Buffer): GraphQLParameters | undefined {
    if (body.length > MAX_BODY_BYTES) return parse(body);
    // Latin-1 maps each byte to one character, so that different bodies have different keys.
    const key = body.toString('latin1');
    const cached = this.#cache.get(key);
    if (cached) return cached;
    const parameters = parse(body);
    if (parameters?.variables === null) this.#cache.set(key, parameters);
    return parameters;
  }
}

function parse(body: Buffer): GraphQLParameters | undefined {
  if (!isUtf8(body)) return undefined;
  try {
    return parseGraphQLRequest(body.toString());
  } catch {
    return undefined;
  }
}
