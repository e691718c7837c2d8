// emp-toolkit, one core a party: a peer of `blindcore bench circuit`.
//
// Prints one JSON document, {"peer": name, "rows": [{"id", "value", "n", "min", "max"}]}; values are million ANDs or
// transfers a second, the median of n batches. --quick takes shorter batches.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "emp-ot/emp-ot.h"
#include "emp-sh2pc/emp-sh2pc.h"
#include "emp-tool/emp-tool.h"

using namespace emp;

namespace {

constexpr int BATCHES = 7;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void fail(const char *why) {
    fprintf(stderr, "emp: %s\n", why);
    exit(1);
}

struct Row {
    std::string id;
    std::vector<double> rates;
};

// Takes what is sent for nothing and gives bytes that are there already: gates without a line.
struct Nowhere : IOChannel {
    void send_data_internal(const void *data, int64_t) override { asm volatile("" : : "r"(data) : "memory"); }
    void recv_data_internal(void *data, int64_t bytes) override { memset(data, 1, bytes); }
};

// AES-128 `times` times, the cipher of each as the key of the next; ANDs of all.
uint64_t chained(AES_Calculator &aes, std::vector<Bit> &key, std::vector<Bit> &plain, int times) {
    const uint64_t before = backend->num_and();
    std::vector<Bit> out(128);
    for (int i = 0; i < times; i++) {
        aes.encrypt_with_key(plain.data(), key.data(), out.data());
        std::copy(out.begin(), out.end(), key.begin());
    }
    return backend->num_and() - before;
}

Row gates(const char *id, bool garbles, int times) {
    Nowhere io;
    std::unique_ptr<Backend> party;
    if (garbles)
        party = std::make_unique<HalfGateGen>(&io);
    else
        party = std::make_unique<HalfGateEva>(&io);
    backend = party.get();
    std::vector<Bit> key(128), plain(128);
    PRG random;
    for (auto *bits : {&key, &plain})
        for (auto &bit : *bits) random.random_block(&bit.bit, 1);
    AES_Calculator aes;
    Row row{id, {}};
    for (int i = 0; i <= BATCHES; i++) {
        const double start = now();
        const uint64_t ands = chained(aes, key, plain, times);
        if (i > 0) row.rates.push_back(ands / (now() - start) / 1e6);
    }
    backend = nullptr;
    return row;
}

// Runs a party in a process of its own, the other here, over loopback TCP; what the latter returns.
double both(const std::function<double(int, IOChannel &)> &party) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (listener < 0 || bind(listener, (sockaddr *)&address, length) || listen(listener, 1) ||
        getsockname(listener, (sockaddr *)&address, &length))
        fail("no socket on loopback");
    const pid_t child = fork();
    if (child < 0) fail("no second process");
    if (child == 0) {
        const int line = socket(AF_INET, SOCK_STREAM, 0);
        if (line < 0 || connect(line, (sockaddr *)&address, length)) _exit(1);
        {
            NetIO io(line);
            party(BOB, io);
        }
        _exit(0);
    }
    const int line = accept(listener, nullptr, nullptr);
    if (line < 0) fail("the second process did not come");
    close(listener);
    double out;
    {
        NetIO io(line);
        out = party(ALICE, io);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail("the second process failed");
    return out;
}

Row two_party(const char *id, int times) {
    Row row{id, {}};
    for (int i = 0; i <= BATCHES; i++) {
        const double rate = both([times](int side, IOChannel &io) {
            const double start = now();
            setup_semi_honest(&io, side);
            Integer key(128, (__int128)2, ALICE), plain(128, (__int128)3, BOB);
            AES_Calculator aes;
            const uint64_t ands = chained(aes, key.bits, plain.bits, times);
            const std::string cipher = key.reveal<std::string>(PUBLIC);
            const double rate = ands / (now() - start) / 1e6;
            if (cipher.empty()) fail("nothing was revealed");
            finalize_semi_honest();
            return rate;
        });
        if (i > 0) row.rates.push_back(rate);
    }
    return row;
}

Row transfers(const char *id, bool malicious, int64_t count) {
    Row row{id, {}};
    both([&](int side, IOChannel &io) {
        SoftSpokenOT<4> ot(side, &io, malicious);
        BlockVec words(count);
        for (int i = 0; i <= BATCHES; i++) {
            const double start = now();
            if (side == ALICE)
                ot.rcot_send(words.data(), count);
            else
                ot.rcot_recv(words.data(), count);
            // The sender has what it needs when the receiver has, too.
            char done = 0;
            if (side == ALICE)
                io.recv_data(&done, 1);
            else
                io.send_data(&done, 1);
            io.flush();
            if (i > 0) row.rates.push_back(count / (now() - start) / 1e6);
        }
        return 0.0;
    });
    return row;
}

}  // namespace

int main(int count, char **arguments) {
    const bool quick = count > 1 && !strcmp(arguments[1], "--quick");
    const int scale = quick ? 1 : 8;
    std::vector<Row> rows;
    rows.push_back(gates("circuit.garble.aes128x1000.1t", true, 125 * scale));
    rows.push_back(gates("circuit.evaluate.aes128x1000.1t", false, 125 * scale));
    rows.push_back(two_party("circuit.e2e.aes128x4000", 500 * scale));
    rows.push_back(transfers("circuit.ot.extend", false, int64_t(1) << (quick ? 19 : 22)));
    rows.push_back(transfers("circuit.ot.extend.checked", true, int64_t(1) << (quick ? 19 : 22)));
    printf("{\"peer\": \"%s\", \"rows\": [", PEER);
    for (size_t i = 0; i < rows.size(); i++) {
        auto &rates = rows[i].rates;
        std::sort(rates.begin(), rates.end());
        printf("%s\n  {\"id\": \"%s\", \"value\": %.3f, \"n\": %zu, \"min\": %.3f, \"max\": %.3f}", i ? "," : "",
               rows[i].id.c_str(), rates[rates.size() / 2], rates.size(), rates.front(), rates.back());
    }
    printf("\n]}\n");
}
