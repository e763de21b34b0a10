-- /etc/apache2/svc-api.lua: deletes what only svc-api may say, and names that some services take for others, as "_" for
-- "-".

function delete_forged(r)
    for name in pairs(r:headers_in_table()) do
        if name:lower():match("^x%-auth%-") or name:match("[^%w-]") then
            r.headers_in[name] = nil
        end
    end
    -- WebSocket alone: by another protocol, as h2c, requests would pass that nobody asks svc-api about.
    local upgrade = r.headers_in["Upgrade"]
    if upgrade and (r.method ~= "GET" or upgrade:lower() ~= "websocket") then
        r.headers_in["Upgrade"] = nil
    end
    -- A client may not name headers that are then taken out.
    local connection = r.headers_in["Connection"]
    if connection and connection:lower():find("x-", 1, true) then
        r.headers_in["Connection"] = "close"
    end
    return apache2.DECLINED
end
