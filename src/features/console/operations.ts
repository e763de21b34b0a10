import type { Context } from 'hono';
import { type Admitted, type GraphQLPipeline, HonoRequest, statusOf } from '../../http/index.ts';

/** An error of a GraphQL answer. */
export interface OperationError {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions: {
    readonly code: string;
    /** The message without what to do about it in terms of the schema. */
    readonly reason?: string;
    /** Each issue of what was given, with where it is. */
    readonly problems?: readonly { readonly message: string; readonly path: readonly (string | number)[] }[];
  };
}

/** An operation was not done, or not all of it. */
export class OperationFailed extends Error {
  readonly errors: readonly OperationError[];
  readonly status: number;

  constructor(errors: readonly OperationError[], status: number) {
    super(errors[0]?.message ?? 'The request failed.');
    this.errors = errors;
    this.status = status;
  }

  /** The code of the first error. */
  get code(): string | undefined {
    return this.errors[0]?.extensions.code;
  }

  /** The status of a page that shows it: errors may come beside data. */
  get pageStatus(): number {
    return this.status >= 400 ? this.status : statusOf(this.code ?? '');
  }

  /** What went wrong, in terms of no schema. */
  get reason(): string {
    return this.errors[0]?.extensions.reason ?? this.message;
  }

  /** What is wrong with the fields of what was given, by their names; what concerns no field has an empty one. */
  get problems(): ReadonlyMap<string, string> {
    const problems = new Map<string, string>();
    for (const { message, path } of this.errors[0]?.extensions.problems ?? []) {
      const field = `${path[0] ?? ''}`;
      problems.set(field, [problems.get(field) ?? [], message].flat().join(' '));
    }
    return problems;
  }
}

/** An operation that makes a credential, or lets an application fetch one. */
export const MAKES_SECRET = /\b(createApiKey|rotateApiKey|applyApiKeys|approveConsentRequest)\(/;

/** A GraphQL request of a page, made where it would otherwise arrive. */
class PageRequest extends HonoRequest {
  override get method(): string {
    return 'POST';
  }

  readonly #body: Uint8Array;

  constructor(c: Context, body: string) {
    super(c);
    this.#body = Buffer.from(body);
  }

  /** The headers that describe the body are those of the form. */
  override header(name: string): string | undefined {
    if (name === 'accept') return 'application/graphql-response+json';
    if (name === 'content-type') return 'application/json';
    return name.startsWith('content-') ? undefined : super.header(name);
  }

  override async body(): Promise<Uint8Array> {
    return this.#body;
  }

  override onClientGone(listener: () => void): () => void {
    // A browser that sends a form again gives up the first one, and gets what that led to.
    if (this.c.req.method === 'POST') return () => {};
    return super.onClientGone(listener);
  }
}

/**
 * Does a GraphQL operation as programs do theirs: with the same permissions, limits and errors.
 * @throws OperationFailed if there was any error
 */
export async function operate<Data>(
  pipeline: GraphQLPipeline,
  { c, admitted }: { c: Context; admitted: Admitted },
  { query, variables }: { query: string; variables: object },
): Promise<Data> {
  const request = new PageRequest(c, JSON.stringify({ query, variables }));
  const { status, text } = await pipeline.answer(request, admitted);
  const { data, errors } = JSON.parse(text) as { data?: Data; errors?: OperationError[] };
  if (errors || data === undefined || data === null) throw new OperationFailed(errors ?? [], status);
  return data;
}

/** What operations answer, or why one was not done. @throws what is no failure of an operation */
export async function orFailed<Answer>(asked: Promise<Answer>): Promise<Answer | OperationFailed> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof OperationFailed) return error;
    throw error;
  }
}
