import type { AuditEntry } from '../audit/index.ts';
import type { Suggestion } from '../authorization/index.ts';
import type { ConfusableName, SecretDelivery } from '../changes/index.ts';
import type { KeyFields, UsageByPeriod, UsageRequest } from '../key/index.ts';
import type { Catalog } from '../permissions/index.ts';
import type {
  Changed,
  Created,
  Deleted,
  KeyDecision,
  KeyName,
  KeyPage,
  KeyState,
  KeyWithAccess,
  ManyPlan,
  Preview,
  ReviewedKey,
  Rotated,
  SortedKeys,
} from '../service/index.ts';
import type { KeysOperation, Operations } from './operation.ts';
import type { OPERATIONS } from './operations.ts';

/** The answers that commands get to operations: those of the table, with the state of each key. */
interface Answers {
  apiKeys: KeyPage;
  apiKey: KeyState | null | undefined;
  apiKeyList: SortedKeys;
  permissions: Catalog;
  previewApiKey: Preview;
  createApiKey: Created;
  updateApiKey: Changed & { readonly confusable: ConfusableName[] };
  /** Also what a key that is disabled did to others. */
  setApiKeyEnabled: Changed & Pick<Deleted, 'issued'>;
  rotateApiKey: Rotated;
  finishApiKeyRotation: KeyState;
  rollBackApiKeyRotation: KeyState;
  deleteApiKeys: Deleted;
  apiKeyChangePlan: ManyPlan;
  /** The keys that were changed. */
  narrowApiKeys: readonly KeyName[];
  updateApiKeys: readonly KeyName[];
  auditLog: AuditEntry[];
}

type InputOf<Name extends keyof Answers> =
  (typeof OPERATIONS)[Name] extends KeysOperation<infer Input, unknown> ? Input : never;

/** An input whose secrets are delivered with the answer that commands get. */
type Asked<Input, Answer> = Input extends { delivery?: unknown }
  ? Omit<Input, 'delivery'> & { readonly delivery?: SecretDelivery<Answer> | undefined }
  : Input;

/** A request to a server. */
export interface ServerRequest<Answer> {
  /** The document. Arguments that are undefined are left out: they cost nothing. */
  documentFor(variables: object): string;
  /** Reads the data of an answer. */
  readonly read: (data: unknown) => Answer;
}

/** A running server, as operations of features ask it. */
export interface Server {
  /**
   * Asks, and reads the answer.
   * @throws KeysError as the rules do on the server; UNAUTHENTICATED, RATE_LIMITED, SERVER_…
   */
  ask<Answer>(request: ServerRequest<Answer>, variables: object): Promise<Answer>;
  /** Asks by a document. Its data is what the server has sent. */
  ask(document: string, variables?: object): Promise<unknown>;
  /** Everything that can be granted there. */
  permissions(): Promise<Catalog>;
}

/** How a server is asked for the operations of a feature, by their names. */
export type RemoteOperations = Readonly<Record<string, (server: Server, input: never) => Promise<unknown>>>;

/** Functions that ask a server for the operations of a table. */
type RemoteOf<Table> = {
  readonly [Name in keyof Table]?: Table[Name] extends KeysOperation<infer Input, infer Answer>
    ? (server: Server, input: Input) => Promise<Awaited<Answer>>
    : RemoteOperations[string];
};

/** Operations of a feature as commands do them. */
type Done<Table> = {
  readonly [
    Name in keyof Table as Table[Name] extends KeysOperation<never, unknown> ? Name : never
  ]: Table[Name] extends KeysOperation<infer Input, infer Answer> ? (input: Input) => Promise<Awaited<Answer>> : never;
};

/** Operations as commands do them, by their names in the table. */
export type ClientOperations = {
  readonly [Name in keyof Answers]: (input: Asked<InputOf<Name>, Answers[Name]>) => Promise<Answers[Name]>;
};

/** Does operations of features. */
export interface OperationsClient {
  /** The absolute path of the store, its URL without the password, or the address of the server. */
  readonly location: string;
  /** The operations of a feature. On a server, each is done by its function of `remote`. */
  of<Table extends Operations>(feature: {
    readonly operations: Table;
    readonly remote?: () => Promise<RemoteOf<Table>>;
  }): Done<Table>;
}

/**
 * Operations on the keys of a store, as its operator, or of a running server, as the key that is sent. The rules decide
 * wherever they run. Each throws what `KeysService` throws; with a server also KeysError UNAUTHENTICATED, RATE_LIMITED
 * and SERVER_…. A secret that cannot be delivered is taken back.
 */
export interface Client extends ClientOperations, OperationsClient {
  /** False for a store that does not exist: it is empty, and takes no changes. */
  readonly exists: boolean;
  /** True if a change whose secrets cannot be delivered is reverted as a whole, and not its new secrets alone. */
  readonly revertsAll: boolean;
  /** The most keys that are changed at once. */
  readonly mostAtOnce: number;
  /** The time between two looks for new entries, in milliseconds. */
  readonly pollMs: number;
  show(name: string): Promise<KeyWithAccess | undefined>;
  /** All keys, page by page, oldest first, as they are reviewed. */
  review(): AsyncGenerator<readonly ReviewedKey[]>;
  /** The same name with those that it looks like, if a key of that name would be new and is not refused for it. */
  findConfusableNames(name: string): Promise<ConfusableName[]>;
  /** @param permission as the user wrote it */
  decide(key: KeyFields, permission: string): Promise<KeyDecision>;
  suggest(key: KeyFields): Promise<Suggestion>;
  /** The ends of its requests, by hours or days. */
  usageOf(key: KeyFields, request: UsageRequest): Promise<UsageByPeriod>;
  /** The name of the key for which a secret still works, or can do so again; undefined where that cannot be told. */
  findNameOfWorking?(secret: string): Promise<string | undefined>;
  close(): Promise<void>;
}
