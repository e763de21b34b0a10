import { type Client, findClient, hostOfClient, readRegistered } from '../clients.ts';
import type { ClientDocuments } from './client-documents.ts';
import { OAuthError, type Parameters } from './oauth-error.ts';

/** In characters (RFC 1035, section 2.3.4), with a port. */
const MAX_HOST_LENGTH = 260;

/** The applications that can request keys. */
export class Clients {
  readonly #registered: readonly Client[];
  readonly #documents: ClientDocuments | undefined;
  /** Applications can register themselves (RFC 7591). */
  readonly mayRegister: boolean;

  /** @param documents undefined where no application is known by its document */
  constructor(registered: readonly Client[], documents: ClientDocuments | undefined, mayRegister: boolean) {
    this.#registered = registered;
    this.#documents = documents;
    this.mayRegister = mayRegister;
  }

  /** Applications can be known by a document at the URL that is their id. */
  get haveDocuments(): boolean {
    return this.#documents !== undefined;
  }

  /** Some applications may refresh their keys. */
  get mayRefresh(): boolean {
    return this.haveDocuments || this.mayRegister || this.#registered.some(({ refreshes }) => refreshes);
  }

  /** The application that a request names. @throws OAuthError invalid_client, temporarily_unavailable */
  async find(given: Parameters): Promise<Client> {
    const id = given.need('client_id');
    return this.#here(id) ?? (this.#documents?.allows(id) ? await this.#documents.find(id) : this.#unknown(id));
  }

  /** The id of the application named in a request whose code or key identifies the rest. @throws OAuthError */
  idIn(given: Parameters): string {
    const id = given.need('client_id');
    return this.#here(id) || this.#documents?.allows(id) ? id : this.#unknown(id);
  }

  #here(id: string): Client | undefined {
    return findClient(this.#registered, id) ?? (this.mayRegister ? readRegistered(id) : undefined);
  }

  #unknown(id: string): never {
    const host = hostOfClient({ id });
    const message =
      host === undefined || host.length > MAX_HOST_LENGTH || this.#documents?.allowsHost(host)
        ? 'This client_id does not exist. Register the client first.'
        : `Clients of ${host} are not allowed here. If the administrator of this service trusts ${host}, they can add it in ` +
          `svc-api.yaml: clients: { metadata-documents: [${host}] }.`;
    throw new OAuthError('invalid_client', message);
  }
}
