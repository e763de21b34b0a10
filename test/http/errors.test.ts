import assert from 'node:assert/strict';
import { GraphQLError } from 'graphql';
import { createApp } from '../../src/service/create-app.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';
import { type GraphQLReply, query, startTestService, type TestService } from '../support/server.ts';

const extension = {
  typeDefs: `extend type Query {
    fails: Int @requires(resource: ME, action: READ_OWN)
    intended: Int @requires(resource: ME, action: READ_OWN)
    nothing: Int! @requires(resource: ME, action: READ_OWN)
  }`,
  resolvers: {
    Query: {
      fails: () => {
        throw new Error('the password of the database is hunter2');
      },
      intended: () => {
        throw new GraphQLError('There is no disk left.', { extensions: { code: 'NO_DISK' } });
      },
      nothing: () => null,
    },
  },
};

describeOnEach('errors while a request is run', () => {
  let test: TestService;
  let secret: string;
  const { log, lines } = collectingLog();
  before(async () => {
    test = await startTestService({ extensions: [extension], log });
    ({ secret } = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] }));
  });
  after(() => test.stop());

  it('expose no internals but a request id, which the log has', async () => {
    const { status, body } = await query(test.url, secret, '{ fails online }');
    const { requestId, ...extensions } = body.errors![0]!.extensions;
    assert.equal(status, 200);
    assert.deepEqual(body.data, { fails: null, online: true });
    assert.deepEqual(
      { ...body.errors![0], extensions },
      {
        message: 'Internal server error',
        locations: [{ line: 1, column: 3 }],
        path: ['fails'],
        extensions: { code: 'INTERNAL_SERVER_ERROR' },
      },
    );
    const logged = lines.find(({ fields }) => 'requestId' in fields && fields.requestId === requestId);
    assert.match(String((logged!.fields as { err: Error }).err), /hunter2/);
  });

  it('keep their text where they are meant for the client', async () => {
    const { body } = await query(test.url, secret, '{ intended }');
    assert.equal(body.errors![0]!.message, 'There is no disk left.');
    assert.deepEqual(body.errors![0]!.extensions, { code: 'NO_DISK' });
  });

  it('stay with their field, also where a host breaks its own type', async () => {
    const { body } = await query(test.url, secret, '{ nothing online }');
    assert.deepEqual(body.data, { nothing: null, online: true });
    assert.deepEqual(
      body.errors!.map(({ message, path }) => [message, path]),
      [['Internal server error', ['nothing']]],
    );
  });

  it('of a route that a host has added expose no internals but a request id, which the log has', async () => {
    const app = await createApp({ keys: test.keys, log });
    app.get('/host', () => {
      throw new Error('the password of the database is hunter2');
    });
    const reply = await app.request('/host');
    const { errors } = (await reply.json()) as GraphQLReply['body'];
    const { requestId, ...extensions } = errors![0]!.extensions;
    assert.deepEqual(
      [reply.status, reply.headers.get('cache-control'), errors![0]!.message, extensions],
      [500, 'no-store', 'Internal server error', { code: 'INTERNAL_SERVER_ERROR' }],
    );
    const logged = lines.find(({ fields }) => 'requestId' in fields && fields.requestId === requestId);
    assert.match(String((logged!.fields as { err: Error }).err), /hunter2/);
  });

  it('are not written to the console', async () => {
    const written: string[] = [];
    const { error } = console;
    console.error = (...args: unknown[]) => void written.push(args.join(' '));
    try {
      for (const document of ['{ fails }', '{ me {', '{ unknown }', 'query ($x: Int!) { online }'])
        await query(test.url, secret, document);
    } finally {
      console.error = error;
    }
    assert.deepEqual(written, []);
  });
});
