import type { Context } from 'hono';
import { type Admitted, type GraphQLPipeline, HonoRequest, statusOf } from '../../http/index.ts';

/** An error of a GraphQL answer. */
export interface OperationError {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions: {
    readonly code: string;
    /** The message without a remedy that refers to the schema. */
    readonly reason?: string;
    /** Problems of the input, each with its path. */
    readonly problems?: readonly { readonly message: string; readonly path: readonly (string | number)[] }[];
  };
}

/** An operation that failed, at least in part. */
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

  /** Status of the page that shows it, because errors can come together with data. */
  get pageStatus(): number {
    return this.status >= 400 ? this.status : statusOf(this.code ?? '');
  }

  /** The reason, without terms of the schema. */
  get reason(): string {
    return this.errors[0]?.extensions.reason ?? this.message;
  }

  /** Problems by field of the input; those of no field under an empty name. */
  get problems(): ReadonlyMap<string, string> {
    const problems = new Map<string, string>();
    for (const { message, path } of this.errors[0]?.extensions.problems ?? []) {
      const field = `${path[0] ?? ''}`;
      problems.set(field, [problems.get(field) ?? [], message].flat().join(' '));
    }
    return problems;
  }
}

/** Operations that create a credential, or let an application fetch one. */
export const MAKES_SECRET = /\b(createApiKey|rotateApiKey|applyApiKeys|approveConsentRequest)\(/;

/** A GraphQL request of a page, sent within the process. */
class PageRequest extends HonoRequest {
  override get method(): string {
    return 'POST';
  }

  readonly #body: Uint8Array;

  constructor(c: Context, body: string) {
    super(c);
    this.#body = Buffer.from(body);
  }

  /** Headers of the body would describe the form, not the query. */
  override header(name: string): string | undefined {
    if (name === 'accept') return 'application/graphql-response+json';
    if (name === 'content-type') return 'application/json';
    return name.startsWith('content-') ? undefined : super.header(name);
  }

  override async body(): Promise<Uint8Array> {
    return this.#body;
  }

  override onClientGone(listener: () => void): () => void {
    // Finish the work: a browser that sends a form twice drops the first request, but shows its result.
    if (this.c.req.method === 'POST') return () => {};
    return super.onClientGone(listener);
  }
}

/**
 * Runs a GraphQL operation as for any program: with the same permissions, limits and errors.
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

/** Returns the answer of operations, or the failure of one. @throws any other error */
export async function orFailed<Answer>(asked: Promise<Answer>): Promise<Answer | OperationFailed> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof OperationFailed) return error;
    throw error;
  }
}
