import { createServer } from 'node:http';
import { createSchema, createYoga } from 'graphql-yoga';
import { type CallerContext, listenAndReport, naiveCheck, resolvers, typeDefs } from './common.ts';

const check = naiveCheck();
const yoga = createYoga<object, CallerContext>({
  schema: createSchema({ typeDefs, resolvers }),
  logging: false,
  graphiql: false,
  plugins: [
    {
      onRequest: (event) => {
        const caller = check(event.request.headers.get('authorization'));
        if (caller) Object.assign(event.serverContext as object, { caller });
        else
          event.endResponse(event.fetchAPI.Response.json({ errors: [{ message: 'Unauthorized' }] }, { status: 401 }));
      },
    },
  ],
});
listenAndReport(createServer(yoga));
