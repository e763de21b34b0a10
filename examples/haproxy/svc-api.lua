-- /etc/haproxy/svc-api.lua: the action lua.svc-api, which asks svc-api whether a request is allowed.
-- Use it as: http-request lua.svc-api /auth/haproxy?resource=GRAFANA

local SVC_API = "http://127.0.0.1:4000"
-- HAProxy tries four times.
local TIMEOUT_MS = 1000
local IDENTITY = { "x-auth-key-id", "x-auth-key-name", "x-auth-roles", "x-auth-permission" }
-- The client's headers that svc-api needs: the key; signs of a browser that opens a page, of a CORS preflight, of a request
-- from another site and of a WebSocket; and headers that make some services read another method or path.
local PASSED_ON = {
    "authorization", "x-api-key", "accept", "origin", "referer", "access-control-request-method",
    "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest", "x-requested-with", "sec-websocket-key", "upgrade",
    "x-http-method", "x-http-method-override", "x-method-override", "x-original-url", "x-rewrite-url",
    "x-script-name",
}
-- The headers of a refusal that the client gets.
local ANSWERED = {
    "www-authenticate", "retry-after", "ratelimit", "ratelimit-policy", "content-type", "cache-control",
    "content-security-policy", "referrer-policy", "x-content-type-options", "x-frame-options",
}
local REFUSED = { [401] = true, [403] = true, [429] = true, [503] = true }

-- All values of a header, in order.
local function values(headers, name)
    local found = {}
    for index, value in pairs(headers[name] or {}) do
        found[index + 1] = value
    end
    return found
end

-- The cookies of svc-api's own pages, or all other cookies.
local function pick(cookies, are_own)
    local picked = {}
    for cookie in cookies:gmatch("[^;]+") do
        local is_own = cookie:find("^%s*svc_api_") or cookie:find("^%s*__Host%-svc_api_")
        if (is_own ~= nil) == are_own then
            picked[#picked + 1] = cookie:match("^%s*(.*)$")
        end
    end
    return table.concat(picked, "; ")
end

local function refuse(txn, status, answer)
    local reply = txn:reply({ status = status })
    for _, name in ipairs(ANSWERED) do
        for _, value in ipairs(values(answer.headers or {}, name)) do
            reply:add_header(name, value)
        end
    end
    reply:set_body(answer.body or "")
    txn:done(reply)
end

core.register_action("svc-api", { "http-req" }, function(txn, endpoint)
    local own = txn.http:req_get_headers()
    local headers = {
        ["x-forwarded-method"] = { txn.f:method() },
        ["x-forwarded-proto"] = { txn.f:ssl_fc() == 1 and "https" or "http" },
        ["x-forwarded-host"] = values(own, "host"),
        ["x-forwarded-uri"] = { txn.f:pathq() },
        ["x-forwarded-for"] = { txn.f:src() },
    }
    for _, name in ipairs(PASSED_ON) do
        if own[name] then
            headers[name] = values(own, name)
        end
    end
    headers["cookie"] = { pick(table.concat(values(own, "cookie"), "; "), true) }
    local answer = core.httpclient():get({ url = SVC_API .. endpoint, headers = headers, timeout = TIMEOUT_MS })
    if answer.status ~= 200 then
        return refuse(txn, REFUSED[answer.status] and answer.status or 503, answer)
    end
    for _, name in ipairs(IDENTITY) do
        txn.http:req_set_header(name, values(answer.headers, name)[1] or "")
    end
    txn.http:req_del_header("cookie")
    for _, cookies in ipairs(values(own, "cookie")) do
        txn.http:req_add_header("cookie", pick(cookies, false))
    end
end, 1)
