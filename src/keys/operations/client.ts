import type { AuditEntry } from '../audit/index.ts';
import type { ConfusableName, SecretDelivery } from '../changes/index.ts';
import type { KeyFields } from '../key/index.ts';
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
  Rotated,
  SortedKeys,
} from '../service/index.ts';
import type { KeysOperation, Operations } from './operation.ts';
import type { OPERATIONS } from './operations.ts';

/** The answers of operations to commands: those of the table, with the state of each key. */
interface Answers {
  apiKeys: KeyPage;
  apiKey: KeyState | null | undefined;
  apiKeyList: SortedKeys;
  permissions: Catalog;
  previewApiKey: Preview;
  createApiKey: Created;
  updateApiKey: Changed & { readonly confusable: ConfusableName[] };
  /** With the effects of a disabled key on others. */
  setApiKeyEnabled: Changed & Pick<Deleted, 'issued'>;
  rotateApiKey: Rotated;
  finishApiKeyRotation: KeyState;
  rollBackApiKeyRotation: KeyState;
  deleteApiKeys: Deleted;
  apiKeyChangePlan: ManyPlan;
  /** The changed keys. */
  narrowApiKeys: readonly KeyName[];
  updateApiKeys: readonly KeyName[];
  auditLog: AuditEntry[];
}

type InputOf<Name extends keyof Answers> =
  (typeof OPERATIONS)[Name] extends KeysOperation<infer Input, unknown> ? Input : never;

/** An input whose secrets are delivered with the command's answer. */
type Asked<Input, Answer> = Input extends { delivery?: unknown }
  ? Omit<Input, 'delivery'> & { readonly delivery?: SecretDelivery<Answer> | undefined }
  : Input;

/** A request to a server. */
export interface ServerRequest<Answer> {
  /** The document. Undefined variables are left out, as arguments can cost. */
  documentFor(variables: object): string;
  /** Reads the data of an answer. */
  readonly read: (data: unknown) => Answer;
}

/** A running server, as the operations of features use it. */
export interface Server {
  /**
   * Sends a request and reads the answer.
   * @throws KeysError as the rules do on the server; UNAUTHENTICATED, RATE_LIMITED, SERVER_…
   */
  ask<Answer>(request: ServerRequest<Answer>, variables: object): Promise<Answer>;
  /** Sends a document. The data is returned as the server sent it. */
  ask(document: string, variables?: object): Promise<unknown>;
  /** Everything that can be granted there. */
  permissions(): Promise<Catalog>;
}

/** Functions that ask a server for the operations of a feature, by name. */
export type RemoteOperations = Readonly<Record<string, (server: Server, input: never) => Promise<unknown>>>;

/** Functions that ask a server for the operations of a table. */
type RemoteOf<Table> = {
  readonly [Name in keyof Table]?: Table[Name] extends KeysOperation<infer Input, infer Answer>
    ? (server: Server, input: Input) => Promise<Awaited<Answer>>
    : RemoteOperations[string];
};

/** The operations of a feature, as functions for commands. */
type Done<Table> = {
  readonly [
    Name in keyof Table as Table[Name] extends KeysOperation<never, unknown> ? Name : never
  ]: Table[Name] extends KeysOperation<infer Input, infer Answer> ? (input: Input) => Promise<Awaited<Answer>> : never;
};

/** Operations as functions for commands, by their names in the table. */
export type ClientOperations = {
  readonly [Name in keyof Answers]: (input: Asked<InputOf<Name>, Answers[Name]>) => Promise<Answers[Name]>;
};

/** Performs the operations of features. */
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
 * Operations on the keys of a store, as its operator, or of a running server, as the key that is sent. The same rules
 * apply either way. Each throws what `KeysService` throws; with a server also KeysError UNAUTHENTICATED, RATE_LIMITED
 * and SERVER_…. A secret that cannot be delivered is revoked.
 */
export interface Client extends ClientOperations, OperationsClient {
  /** False for a store that does not exist: it counts as empty, and refuses changes. */
  readonly exists: boolean;
  /** True if a failed delivery reverts the whole change, not only its new secrets. */
  readonly revertsAll: boolean;
  /** The most keys that one change can include. */
  readonly mostAtOnce: number;
  /** The time between two checks for new entries, in milliseconds. */
  readonly pollMs: number;
  show(name: string): Promise<KeyWithAccess | undefined>;
  /** The names that look like this one, if a key with this name would be new and would not be refused for it. */
  findConfusableNames(name: string): Promise<ConfusableName[]>;
  /** @param permission as the user wrote it */
  decide(key: KeyFields, permission: string): Promise<KeyDecision>;
  /** The name of the key whose secret works, or could work again; undefined if that is unknown. */
  findNameOfWorking?(secret: string): Promise<string | undefined>;
  close(): Promise<void>;
}
