import { type sendUnaryData, Server, ServerCredentials, type ServerUnaryCall, status } from '@grpc/grpc-js';
import { openKeys, type Permission, type Principal } from 'svc-api';

const keys = await openKeys();
const CODES: Readonly<Record<number, status>> = {
  400: status.UNAUTHENTICATED,
  401: status.UNAUTHENTICATED,
  403: status.PERMISSION_DENIED,
  429: status.RESOURCE_EXHAUSTED,
};

/** The principal of a call, whose metadata has `authorization: Bearer <API key>`. Throws the error for the client. */
async function principalOf(call: ServerUnaryCall<unknown, unknown>, permission: Permission): Promise<Principal> {
  const address = call
    .getPeer()
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1');
  const headers = { authorization: call.metadata.get('authorization').map(String) };
  const checked = await keys.check({ headers, address }, { permission });
  if (checked.ok) return checked.principal;
  throw Object.assign(new Error(checked.message), { code: CODES[checked.status] ?? status.UNAVAILABLE });
}

const asJson = {
  requestStream: false,
  responseStream: false,
  requestSerialize: (value: unknown) => Buffer.from(JSON.stringify(value)),
  requestDeserialize: (bytes: Buffer): unknown => JSON.parse(String(bytes)),
  responseSerialize: (value: unknown) => Buffer.from(JSON.stringify(value)),
  responseDeserialize: (bytes: Buffer): unknown => JSON.parse(String(bytes)),
};
const server = new Server();
server.addService(
  { latest: { ...asJson, path: '/backups.Backups/Latest' } },
  {
    latest: (call: ServerUnaryCall<unknown, unknown>, done: sendUnaryData<object>) =>
      principalOf(call, 'SERVICES:READ_ANY').then(
        ({ apiKey }) => done(null, { by: apiKey.name }),
        (error: Error) => done(error),
      ),
  },
);
server.bindAsync(`127.0.0.1:${process.env['PORT']}`, ServerCredentials.createInsecure(), (error) => {
  if (error) throw error;
});
